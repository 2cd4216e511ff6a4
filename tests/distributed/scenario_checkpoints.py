"""Checkpoints of two processes."""
