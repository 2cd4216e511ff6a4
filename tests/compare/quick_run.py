"""Stands for a training in tests: makes a few slow steps, goes on where it was stopped, and writes a result.

Its behaviour comes from the run's settings: `quick: {seconds: 0.05, fail: [2]}` fails for seed 2 once, `fail_always`
always; `{company: 2}` goes on only when two runs of the comparison have begun. What it measures depends on the loss,
its weight, and the seed alone.
"""

import fcntl
import json
import os
import sys
import time
from pathlib import Path

import yaml

EFFECT = {None: 0.0, "good": 0.1, "bad": -0.1, "same": 0.0}


def main() -> None:
    folder = Path(sys.argv[1])
    order = json.loads((folder / "order.json").read_text())
    settings = yaml.safe_load((folder / "settings.yaml").read_text())
    quick = settings["quick"]
    history = folder / "history"
    alone = (folder / "alone").open("a")
    try:
        fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        (folder / "TWO AT ONCE").touch()
        raise
    seed = settings["seed_everything"]
    print("starting seed", seed, flush=True)
    if seed in quick.get("fail_always", ()) or (seed in quick.get("fail", ()) and not history.exists()):
        history.write_text("failed\n")
        print("the GPU fell off the bus", flush=True)
        sys.exit(7)
    (folder / "begun").write_text(str(time.monotonic()))
    runs = next(parent for parent in folder.parents if parent.name == "runs")
    patience = time.monotonic() + 20
    while len(list(runs.rglob("begun"))) < quick.get("company", 1) and time.monotonic() < patience:
        time.sleep(0.02)
    for step in range(len(history.read_text().splitlines()) if history.exists() else 0, 3):
        time.sleep(quick.get("seconds", 0.0))
        with history.open("a") as file:
            file.write(f"{step} {os.environ.get('CUDA_VISIBLE_DEVICES')} {time.monotonic()}\n")
    loss = settings["model"]["numeric_loss"]
    weight = settings["model"].get("loss_weight", 0.0)
    effect = EFFECT[loss and loss["class_path"]] * (1 - abs(weight - 0.3))
    noise = 0.01 * (seed % 3) + 0.003 * ((seed + round(10 * weight)) % 4)
    metrics = {"exact_match": 0.5 + effect + noise, "mean_absolute_error": 3.0 - effect}
    metrics["median_absolute_error"] = float("inf")
    result = {"hash": order["hash"], "stage": order["stage"], "metrics": metrics, "seconds": 1.5}
    draft = folder / "draft"
    draft.write_text(json.dumps(result))
    draft.replace(folder / f"result.{order['stage']}.json")


if __name__ == "__main__":
    main()
