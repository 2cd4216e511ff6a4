"""Strikes short runs at random points, damages what they left, lets them go on, and compares their ends.

`python killing.py FOLDER COUNT SEED [VARIANT]` prints a line of JSON for each trial: without a variant, kills and
damages of one kind of run; with one, or `all` in turn, any signal. Everything is imported once, then every
attempt is a fork that runs the real command line. Points are counted, not timed, so a seed says exactly where: each
micro-batch, each opening, renaming, making and removing of a file in the run's folder, each flush to the disk and each
quarter of a checkpoint's bytes.
"""

import io
import json
import os
import random
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "distributed"))

import sums
import torch
import variants
from ends import assert_same_end

import smmd_lightning.callbacks
from smmd_lightning.cli import main

torch.set_num_threads(1)


SIGNALS = {
    "kill": [signal.SIGKILL],
    "terminate": [signal.SIGTERM],
    "interrupt": [signal.SIGINT],
    "interrupt twice": [signal.SIGINT, signal.SIGINT],
    "preempt": [signal.SIGUSR1],
    "stop and continue": [signal.SIGSTOP],
}


class Points:
    """Counts points; at the wanted one this process sends itself signals."""

    def __init__(self, run, wanted, signals=(signal.SIGKILL,)):
        self.run, self.wanted, self.signals, self.count = str(run), wanted, signals, 0
        sys.addaudithook(self.hear)
        for name in ("fsync", "replace"):
            setattr(os, name, self.around(getattr(os, name)))
        self.save, torch.save = torch.save, self.save_in_pieces
        begin = sums.Seen.on_train_batch_start
        sums.Seen.on_train_batch_start = lambda *a, **k: (self.reach(), begin(*a, **k))[1]

    def hear(self, event, arguments):
        if event in ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir") and self.run in str(arguments[0]):
            self.reach()

    def around(self, function):
        def call(*arguments, **named):
            self.reach()
            result = function(*arguments, **named)
            self.reach()
            return result

        return call

    def save_in_pieces(self, value, file, *rest, **named):
        whole = io.BytesIO()
        self.save(value, whole, *rest, **named)
        data = whole.getvalue()
        if not hasattr(file, "write"):
            with open(file, "wb") as opened:
                return self.write(opened, data)
        return self.write(file, data)

    def write(self, file, data):
        quarter = -(-len(data) // 4)
        for place in range(0, len(data), quarter):
            self.reach()
            file.write(data[place : place + quarter])
            file.flush()

    def reach(self):
        self.count += 1
        if self.count == self.wanted:
            for number in self.signals:
                os.kill(os.getpid(), number)


def attempt(folder, command, wanted, signals=(signal.SIGKILL,)):
    """Runs the command in a fork; returns its exit status (negative: the signal) and the points it passed."""
    log, counted = folder / "log.txt", folder / "points.txt"
    counted.unlink(missing_ok=True)
    child = os.fork()
    if child:
        _, status = os.waitpid(child, os.WUNTRACED)
        while os.WIFSTOPPED(status):
            os.kill(child, signal.SIGCONT)
            _, status = os.waitpid(child, os.WUNTRACED)
        return os.waitstatus_to_exitcode(status), int(counted.read_text()) if counted.exists() else None
    code = 1
    try:
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(output, 1)
        os.dup2(output, 2)
        points = Points(folder / "run", wanted, signals)
        main(command[1:])
        points.wanted = None
        counted.write_text(str(points.count))
        code = 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def damage(run, dice):
    """Spoils the last checkpoint as a failing disk would: cut short, or its end lost."""
    last = run / "checkpoints" / "last.ckpt"
    if not last.exists():
        return "nothing to damage"
    data = last.read_bytes()
    place = dice.randrange(len(data))
    kind = dice.choice(["cut", "zeroed", "emptied"])
    last.write_bytes({"cut": data[:place], "zeroed": data[:place] + bytes(len(data) - place), "emptied": b""}[kind])
    return f"{kind} at {place} of {len(data)}"


def trial(folder, alone, points, dice):
    """Kills a run once to three times and lets it go on; returns what was done."""
    folder.mkdir()
    command = sums.command(folder, 1, 1, workers=0)
    done = []
    for _ in range(dice.choice([1, 1, 2, 3])):
        wanted = dice.randint(1, points)
        code, _ = attempt(folder, command, wanted)
        done.append(f"point {wanted}: {code}")
        if code == 0:  # what was left had fewer points
            break
        assert code == -signal.SIGKILL, (done, (folder / "log.txt").read_text()[-3000:])
        if dice.random() < 0.25:
            done.append(damage(folder / "run", dice))
            last = folder / "run" / "checkpoints" / "last.ckpt"
            if last.exists() and not last.with_name("best.ckpt").exists():  # no other: refused, until a person decides
                code, _ = attempt(folder, command, None)
                assert code == 1, (done, (folder / "log.txt").read_text()[-3000:])
                assert "No checkpoint in" in (folder / "log.txt").read_text()
                last.unlink()
    code, _ = attempt(folder, command, None)
    assert code == 0, (done, (folder / "log.txt").read_text()[-3000:])
    assert_same_end(folder, alone, 1)
    left = [file.name for file in (folder / "run" / "checkpoints").iterdir() if file.suffix != ".ckpt"]
    assert not left, left
    return done


def strike(folder, name, alone, points, dice):
    """Strikes a variant's run once to three times and lets it go on; returns what was done."""
    folder.mkdir()
    command = variants.command(folder, name)
    done = [name]
    for _ in range(dice.choice([1, 1, 2, 3])):
        wanted, kind = dice.randint(1, points), dice.choice(list(SIGNALS))
        code, _ = attempt(folder, command, wanted, SIGNALS[kind])
        done.append(f"{kind} at {wanted}: {code}")
        if code == 0:
            break
    code, _ = attempt(folder, command, None)
    assert code == 0, (done, (folder / "log.txt").read_text()[-3000:])
    try:
        variants.assert_same(folder, alone)
    except AssertionError as error:
        raise AssertionError(f"{done}: {error}") from error
    left = [file.name for file in (folder / "run" / "checkpoints").iterdir() if file.suffix != ".ckpt"]
    assert not left, left
    return done


def strike_all(folder, count, seed, names):
    """Strikes the variants in turn; prints a line for each."""
    alone = {}
    for number in range(count):
        name = names[number % len(names)]
        dice = random.Random(seed * 100_003 + number)
        try:
            if name not in alone:
                place = folder / f"alone-{name}"
                code, points = attempt(place, variants.command(place, name), None)
                assert code == 0, (place / "log.txt").read_text()[-3000:]
                alone[name] = place, points
            done = strike(folder / str(number), name, *alone[name], dice)
            print(json.dumps({"trial": number, "done": done}), flush=True)
        except AssertionError as error:
            print(json.dumps({"trial": number, "failed": f"{name}: {error}"}), flush=True)


if __name__ == "__main__":
    assert smmd_lightning.callbacks
    folder, count, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    import lightning.pytorch.loggers  # noqa: F401  (heavy parts, loaded once for all forks)
    import peft  # noqa: F401
    import transformers  # noqa: F401
    from torch.utils.tensorboard import SummaryWriter  # noqa: F401

    from smmd_lightning.backbones.locate import locate

    locate("tiny:llama")
    if len(sys.argv) > 4:
        names = list(variants.VARIANTS) if sys.argv[4] == "all" else sys.argv[4].split(",")
        strike_all(folder, count, seed, names)
        sys.exit()
    alone = folder / "alone"
    alone.mkdir()
    code, points = attempt(alone, sums.command(alone, 1, 1, workers=0), None)
    assert code == 0, (alone / "log.txt").read_text()[-3000:]
    print(json.dumps({"points": points}), flush=True)
    for number in range(count):
        dice = random.Random(seed * 100_003 + number)
        try:
            print(json.dumps({"trial": number, "done": trial(folder / str(number), alone, points, dice)}), flush=True)
        except AssertionError as error:
            print(json.dumps({"trial": number, "failed": str(error)}), flush=True)
