"""Drawn scenes with short questions, from which a new projector learns to show a language model what a tower sees."""

from datamodules.captions.drawn import DrawnCaptions
from datamodules.captions.module import CaptionDataModule

__all__ = ["CaptionDataModule", "DrawnCaptions"]
