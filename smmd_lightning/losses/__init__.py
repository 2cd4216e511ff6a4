"""Losses on numeric tokens: one module each, all with the interface of `NumericLoss`."""

from smmd_lightning.losses.base import NumericLoss
from smmd_lightning.losses.digit_entropy import DigitEntropyLoss
from smmd_lightning.losses.dist2 import Dist2Loss
from smmd_lightning.losses.emo import EMOLoss
from smmd_lightning.losses.expected_value import NTLNumberLoss, RAFTLoss
from smmd_lightning.losses.gaussian_smoothing import GaussianSmoothingLoss
from smmd_lightning.losses.mixce import MixCELoss
from smmd_lightning.losses.ntil import NTILLoss
from smmd_lightning.losses.ntl import NTLRegressionLoss, NTLWASLoss
from smmd_lightning.losses.place import PlaceWeightedLoss
from smmd_lightning.losses.positions import NumericPositions
from smmd_lightning.losses.smmd import SMMDLoss
from smmd_lightning.losses.whole_number import WholeNumberLoss

__all__ = [
    "DigitEntropyLoss",
    "Dist2Loss",
    "EMOLoss",
    "GaussianSmoothingLoss",
    "MixCELoss",
    "NTILLoss",
    "NTLNumberLoss",
    "NTLRegressionLoss",
    "NTLWASLoss",
    "NumericLoss",
    "NumericPositions",
    "PlaceWeightedLoss",
    "RAFTLoss",
    "SMMDLoss",
    "WholeNumberLoss",
]
