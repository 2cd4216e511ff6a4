"""Tiny models: complete Hugging Face folders with random weights, loaded like any other model."""
