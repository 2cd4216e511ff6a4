"""Text math: arithmetic and word problems drawn on the fly, or problems from files and the hub."""

from datamodules.text_math.arithmetic import DrawnArithmetic
from datamodules.text_math.measurements import DrawnMeasurements
from datamodules.text_math.module import TextMathDataModule
from datamodules.text_math.tables import MathFiles, MathHub
from datamodules.text_math.word_problems import DrawnWordProblems

__all__ = ["DrawnArithmetic", "DrawnMeasurements", "DrawnWordProblems", "MathFiles", "MathHub", "TextMathDataModule"]
