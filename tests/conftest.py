"""Shared by all tests: no network, one thread a process, tiny models written once into a cache of their own."""

import os
from pathlib import Path

ROOT = Path(__file__).parent.parent
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ.setdefault("SMMD_CACHE", str(ROOT / ".pytest_cache" / "smmd_lightning"))

import pytest  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def real() -> Path:
    """Folder of real material beside the checkout; tests that need it are skipped elsewhere."""
    folder = ROOT.parent / "shared" / "real"
    if not folder.is_dir():
        pytest.skip("real material (../shared/real) is not on this machine")
    return folder


@pytest.fixture(scope="session")
def real_tokenizers(real: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of real tokenizers, unpacked: qwen3, llama3, mistral_v3_spm, smollm2."""
    import tarfile

    folder = tmp_path_factory.mktemp("tokenizers")
    with tarfile.open(real / "tokenizers.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder / "tokenizers"
