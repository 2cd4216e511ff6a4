"""`smmd-join`: a vision tower and a language model become one vision-language model.

    smmd-join --tower dinov2-s14 --language smollm2-135m --out models/small --image-size 224
    smmd-join --tower facebook/dinov2-small --language Qwen/Qwen2.5-0.5B-Instruct --out models/mine

The projector between them is new and must be trained first; `configs/experiment/align_smollm2_dinov2.yaml` shows how.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from smmd_lightning.backbones.joining import join
from smmd_lightning.backbones.locate import locate
from smmd_lightning.checkpoints.atomic import close_umask, new_folder


def main(args: Sequence[str] | None = None) -> None:
    """Runs `smmd-join`.

    Args:
        args: Arguments. None: those of this process.
    """
    close_umask()
    parser = argparse.ArgumentParser(prog="smmd-join", description=(join.__doc__ or "").splitlines()[0])
    parser.add_argument("--tower", required=True, help="vision model: folder, hub name, or one of our names")
    parser.add_argument("--language", required=True, help="language model: folder, hub name, or one of our names")
    parser.add_argument("--out", required=True, help="folder to write, empty or not there yet")
    parser.add_argument("--image-size", type=int, help="edge of a picture in pixels; the tower's own if not given")
    parser.add_argument("--feature-layer", type=int, default=-1, help="hidden states of the tower that are read")
    parser.add_argument("--image-token", default="<image>", help="what stands for a picture in a text")
    parser.add_argument("--seed", type=int, default=0, help="seed of the projector's weights")
    parser.add_argument("--trust-remote-code", action="store_true", help="run Python code that comes with the parts")
    given = parser.parse_args(args)
    try:
        if Path(given.out).exists() and any(Path(given.out).iterdir()):
            raise ValueError(f"{given.out} is not empty. Choose another --out, or move it away.")
        with new_folder(given.out) as draft:
            join(
                locate(given.tower),
                locate(given.language),
                draft,
                image_size=given.image_size,
                feature_layer=given.feature_layer,
                image_token=given.image_token,
                seed=given.seed,
                trust_remote_code=given.trust_remote_code,
            )
        print(given.out)
    except (ValueError, RuntimeError, OSError) as error:
        sys.exit(f"smmd-join: {error}")
