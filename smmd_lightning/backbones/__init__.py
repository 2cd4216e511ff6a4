"""Hugging Face models behind one interface; importing this loads no transformers."""

from smmd_lightning.backbones.adapters import LoRA
from smmd_lightning.backbones.base import Backbone
from smmd_lightning.backbones.language import LanguageBackbone
from smmd_lightning.backbones.quantization import Quantization
from smmd_lightning.backbones.vision_language import VisionLanguageBackbone

__all__ = ["Backbone", "LanguageBackbone", "LoRA", "Quantization", "VisionLanguageBackbone"]
