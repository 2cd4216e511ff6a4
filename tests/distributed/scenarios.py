"""What two processes do together, one function a scenario: `python scenarios.py FOLDER NAME…` runs some in a group."""

import faulthandler
import json
import os
import sys
import time
import traceback
from pathlib import Path

import scenario_checkpoints
import scenario_data
import scenario_training

SCENARIOS = {
    name: function
    for module in (scenario_training, scenario_checkpoints, scenario_data)
    for name, function in vars(module).items()
    if getattr(function, "is_scenario", False)
}
ALONE = {"one_goes_on_from_a_folder_of_two": scenario_checkpoints.one_goes_on_from_a_folder_of_two}


def main():
    import torch
    import torch.distributed as dist

    faulthandler.enable()  # a crash below Python says where, too
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    folder, names = Path(sys.argv[1]), sys.argv[2:]
    for name in names:
        place = folder / name
        place.mkdir(exist_ok=True)
        faulthandler.dump_traceback_later(300, exit=True)  # one that hangs says where
        begin = time.monotonic()
        try:
            (SCENARIOS | ALONE)[name](place)
        except BaseException:
            print(f"process {dist.get_rank()}:\n{traceback.format_exc()}", flush=True)
            os._exit(1)  # the other process may be waiting for this one
        dist.barrier()
        if dist.get_rank() == 0:
            (place / "passed.json").write_text(json.dumps(time.monotonic() - begin))
    faulthandler.cancel_dump_traceback_later()
    dist.destroy_process_group()
    os._exit(0)


if __name__ == "__main__":
    main()
