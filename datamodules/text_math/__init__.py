"""Text math: arithmetic and word problems drawn on the fly, or problems from files and the hub."""

from datamodules.text_math.module import DrawnArithmetic, DrawnWordProblems, MathFiles, MathHub, TextMathDataModule

__all__ = ["DrawnArithmetic", "DrawnWordProblems", "MathFiles", "MathHub", "TextMathDataModule"]
