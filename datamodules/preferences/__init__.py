"""Pairs of a right answer and a likely mistake, for training by preference."""

from datamodules.preferences.near_misses import NearMissPairs, near_misses

__all__ = ["NearMissPairs", "near_misses"]
