"""A logger with a key, as those of logging services have one."""

from lightning.pytorch.loggers import CSVLogger


class Keyed(CSVLogger):
    def __init__(self, save_dir: str, api_key: str, name: str = ""):
        super().__init__(save_dir, name=name)
        self.api_key = api_key
