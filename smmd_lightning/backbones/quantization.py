"""Base weights in four or eight bits (QLoRA, Dettmers et al. 2023, arXiv 2305.14314), through bitsandbytes.

Unusual here: what is quantised is never saved. Checkpoints hold the adapter alone, and an export computes with the
weights that the quantised ones stand for, so a merged folder answers as training did and not as the original weights
would.

One real example, as it stands in a YAML file::

    backbone:
      init_args:
        path: Qwen/Qwen2.5-VL-7B-Instruct
        quantization: {bits: 4}
        adapter: {rank: 16}
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, Literal

import torch
from torch import nn


@dataclass
class Quantization:
    """How the frozen base weights are kept; the linear layers of all parts, but not the head.

    Attributes:
        bits: 4 or 8. Eight bits (LLM.int8) round activations too, so no unquantised model answers exactly alike.
        kind: Values of four bits: "nf4" (made for normally distributed weights) or "fp4".
        double: Quantise the scales of four-bit blocks too, which saves 0.4 bits a weight.
        compute_dtype: Type in which four-bit weights are multiplied.
        skip: Last parts of the names of further modules that stay as they are, e.g. "multi_modal_projector".

    Raises:
        ValueError: A setting is out of its range.
    """

    bits: int = 4
    kind: Literal["nf4", "fp4"] = "nf4"
    double: bool = True
    compute_dtype: Literal["float32", "bfloat16", "float16"] = "bfloat16"
    skip: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.bits not in (4, 8):
            raise ValueError(f"quantization bits must be 4 or 8, got {self.bits}")
        if self.kind not in ("nf4", "fp4"):
            raise ValueError(f"quantization kind must be nf4 or fp4, got {self.kind!r}")

    def config(self) -> Any:
        """Returns the settings as transformers takes them.

        Raises:
            RuntimeError: bitsandbytes is not installed.
        """
        if find_spec("bitsandbytes") is None:
            raise RuntimeError(
                "quantization needs the package bitsandbytes: pip install 'smmd_lightning[quantization]'"
            )
        from transformers import BitsAndBytesConfig

        return BitsAndBytesConfig(
            load_in_4bit=self.bits == 4,
            load_in_8bit=self.bits == 8,
            bnb_4bit_quant_type=self.kind,
            bnb_4bit_use_double_quant=self.double,
            bnb_4bit_compute_dtype=getattr(torch, self.compute_dtype),
            llm_int8_skip_modules=["lm_head", "embed_out", *self.skip],
        )


def keep_layout(model: nn.Module) -> None:
    """Keeps four-bit weights in one layout.

    In evaluation on some CPUs bitsandbytes reorders them for a faster product, in bfloat16. Peft goes on reading them
    in the old order, which scrambles the norms that DoRA divides by, and what is merged.

    Args:
        model: The loaded model; changed in place.
    """
    for module in model.modules():
        if hasattr(module, "support_avx512bf16_for_cpu"):
            module.support_avx512bf16_for_cpu = False  # type: ignore[assignment]


def check_quantized(adapter: Any, from_scratch: bool, path: str) -> None:
    """Refuses settings that cannot go together with quantised weights.

    Args:
        adapter: The backbone's `LoRA` settings, or None.
        from_scratch: Whether weights are new.
        path: The model.

    Raises:
        ValueError: There is no adapter, the weights are new or already quantised, or the adapter starts from a
            decomposition of the weights.
    """
    if adapter is None:
        raise ValueError("quantization: weights of 4 or 8 bits cannot be trained themselves; set adapter (LoRA)")
    if from_scratch:
        raise ValueError("quantization: new weights (from_scratch) have to be trained, which quantised ones cannot be")
    if path.endswith(".gguf"):
        raise ValueError(f"quantization: {path!r} is quantised already and is expanded on loading")
    if adapter.init == "pissa":
        raise ValueError("quantization: init: pissa decomposes the weights, which must not be quantised then")
