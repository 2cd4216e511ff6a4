"""Checkpoints: written whole or not at all, sharded or not, resumed exactly."""
