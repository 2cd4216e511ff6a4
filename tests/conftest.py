"""Shared by all tests: no network, one thread a process, tiny models written once into a cache of their own."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "processes"))  # helpers that tests of several folders share
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ.setdefault("SMMD_CACHE", str(ROOT / ".pytest_cache" / "smmd_lightning"))

import preloaded  # noqa: E402
import pytest  # noqa: E402


def pytest_configure(config: pytest.Config) -> None:
    """Names the socket of the session's server of processes, for all xdist workers; lets those that test use a thread.

    xdist's own process tests nothing, and must not wait for torch before it starts its workers.
    """
    is_worker = hasattr(config, "workerinput")
    if is_worker or not getattr(config.option, "numprocesses", None):
        import torch

        torch.set_num_threads(1)
    if not is_worker:
        os.environ[preloaded.ADDRESS] = os.path.join(tempfile.mkdtemp(prefix="smmd_tests_"), str(os.getpid()))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Ends that server, if any test needed it."""
    if not hasattr(config, "workerinput"):
        preloaded.stop_server()
        shutil.rmtree(Path(os.environ[preloaded.ADDRESS]).parent, ignore_errors=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts tests that start processes first: they are the longest, and short ones fill up the end."""
    items.sort(key=lambda item: item.get_closest_marker("distributed") is None)


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
        # An argument of `extractall` only from Python 3.11.4 on; before, the attribute does nothing.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(folder)
    return folder / "tokenizers"
