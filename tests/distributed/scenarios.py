"""What two processes do together, one function a scenario; `python scenarios.py FOLDER NAME…` runs them in one group."""

import json
import os
import sys
import traceback
from pathlib import Path

import scenario_checkpoints
import scenario_training

SCENARIOS = {
    name: function
    for module in (scenario_training, scenario_checkpoints)
    for name, function in vars(module).items()
    if getattr(function, "is_scenario", False)
}


def main():
    import faulthandler
    import time

    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    faulthandler.dump_traceback_later(40, repeat=True, exit=False)
    dist.init_process_group("gloo")
    folder, names = Path(sys.argv[1]), sys.argv[2:]
    found = {}
    for name in names:
        (folder / name).mkdir(exist_ok=True)
        begin = time.monotonic()
        try:
            SCENARIOS[name](folder / name)
            outcome = "passed"
        except Exception:
            outcome = f"process {dist.get_rank()}:\n{traceback.format_exc()}"
        all_outcomes = [None, None]
        dist.all_gather_object(all_outcomes, outcome)
        worst = [text for text in all_outcomes if text != "passed"]
        found[name] = "\n".join(worst) or "passed"
        if dist.get_rank() == 0:
            print(f"{time.monotonic() - begin:6.1f} s  {name}: {found[name]}", flush=True)
            (folder / "found.json").write_text(json.dumps(found))
    dist.destroy_process_group()
    os._exit(0)


if __name__ == "__main__":
    main()
