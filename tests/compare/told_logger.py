"""A logger with a key, which leaves a proof that it got the key."""

from hashlib import sha256
from pathlib import Path

from lightning.pytorch.loggers import CSVLogger


class Told(CSVLogger):
    def __init__(self, save_dir: str, proof: str, api_key: str):
        super().__init__(save_dir)
        Path(proof).write_text(sha256(api_key.encode()).hexdigest())
