r"""Text -> number, text -> time of day: the only parser of answers.

Unusual: model output is untrusted. No text, however long or strange, makes these functions raise or take
more than linear time; what a person would not read as a number or a time is None. Where a text holds several,
`rule` says which one counts: "marked" (the default) takes what follows the last answer mark (`####`,
`\boxed{}`, "the answer is"), and the last one where there is no mark; "last" and "first" ignore marks.

One real example::

    >>> parse_number("Natalia sold 48+24 = 72 clips altogether.\n#### 72")
    Decimal('72')
    >>> parse_time("The clock shows five past three.")
    TimeOfDay(hour=3, minute=5, second=None)
"""

from smmd_lightning.answers.characters import plain_text, same_text
from smmd_lightning.answers.marks import AnswerRule, answer_text
from smmd_lightning.answers.options import option_letter
from smmd_lightning.answers.quantities import Quantity, answer_quantity, find_numbers, parse_number, parse_quantity
from smmd_lightning.answers.separators import Decimals
from smmd_lightning.answers.thoughts import without_thoughts
from smmd_lightning.answers.times import TimeOfDay, find_times, parse_time
from smmd_lightning.answers.words import number_in_words, roman_number

__all__ = [
    "AnswerRule",
    "Decimals",
    "Quantity",
    "TimeOfDay",
    "answer_quantity",
    "answer_text",
    "find_numbers",
    "find_times",
    "number_in_words",
    "option_letter",
    "parse_number",
    "parse_quantity",
    "parse_time",
    "plain_text",
    "roman_number",
    "same_text",
    "without_thoughts",
]
