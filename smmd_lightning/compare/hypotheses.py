"""What a comparison claims beforehand: written to its folder, with a hash, before the first run.

Unusual: the file never changes afterwards. A grid whose hypotheses differ from those of its folder is refused, and a
loss that the grid gained since is known as added later.

One real example, in a grid's file::

    hypotheses:
      - {metric: crps, contrast: [whole_number, ce], rule: "better on at least two tasks after Holm"}
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from smmd_lightning.checkpoints.atomic import write_text

FILE = "hypotheses.json"


@dataclass(frozen=True)
class Hypothesis:
    """One claim, made before the first run.

    Attributes:
        metric: Name of the metric, as tasks list it.
        contrast: The loss, and the one that it is compared with.
        rule: When the claim holds, in words.
        tasks: The only tasks of the claim. None: all.
    """

    metric: str
    contrast: tuple[str, str]
    rule: str
    tasks: list[str] | None = None


def keep_hypotheses(hypotheses: Iterable[Hypothesis], losses: Iterable[str], out: Path) -> list[str]:
    """Writes the hypotheses to a comparison's folder, or checks them against those written there.

    Args:
        hypotheses: Those of the grid; without any nothing is written or checked.
        losses: Names of the grid's losses.
        out: The comparison's folder.

    Returns:
        The losses that were added after the hypotheses were written.

    Raises:
        ValueError: The folder holds other hypotheses, or runs from before there were any.
    """
    claims: list[dict[str, Any]] = json.loads(json.dumps([asdict(each) for each in hypotheses]))
    file, names = out / FILE, list(losses)
    if not file.exists():
        if not claims:
            return []
        if any((out / "runs").glob("*/*/*")):
            raise ValueError(
                f"{out} holds runs but no {FILE}: hypotheses count only if written before the first run. Choose "
                "another folder, or take `hypotheses` out of the grid."
            )
        written = {"sha256": _digest(claims), "hypotheses": claims, "losses": names}
        write_text(file, json.dumps(written, indent=2) + "\n")
        return []
    found = json.loads(file.read_text())
    if found["sha256"] != _digest(claims) or _digest(found["hypotheses"]) != found["sha256"]:
        raise ValueError(
            f"{file} holds other hypotheses than the grid (sha256 {found['sha256'][:12]} there, "
            f"{_digest(claims)[:12]} here). They cannot change after the first run: choose another folder."
        )
    return [name for name in names if name not in found["losses"]]


def _digest(claims: list[dict[str, Any]]) -> str:
    return hashlib.sha256(json.dumps(claims, sort_keys=True).encode()).hexdigest()
