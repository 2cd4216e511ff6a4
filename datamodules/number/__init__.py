"""Any picture or text with a number in it: a table of questions and answers, or a chat file."""

from datamodules.number.module import NumberDataModule
from datamodules.number.tables import NumberColumns, NumberFiles

__all__ = ["NumberColumns", "NumberDataModule", "NumberFiles"]
