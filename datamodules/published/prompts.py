"""How published benchmarks ask: their own words where they published any, so that numbers can be compared.

ChartQAPro's are quoted from the table of direct prompts in its paper (arXiv 2504.05506), MeasureBench's last line from
the evaluation that its authors' results are compared with, ClockBench's system message from its evaluation script; its
questions stand in its data. "It's About Time", TickTockVQA and ChartQA ask no language model in so many words; theirs
are ours.
"""

from __future__ import annotations

MEASUREBENCH = (
    "{question}\nProvide your final answer on the last line in the format: Answer: <value> <unit>. "
    "For example: Answer: 42.5 A"
)
CHARTQA = "{question}\nAnswer the question using a single word or phrase."
CLOCK = "What time does this clock show? Answer as HH:MM."
CLOCKBENCH_SYSTEM = "Be precise. When JSON is requested, reply with ONLY that JSON (no preface, no code block)."

_SHORT = (
    "Your answer should be a single word, number, or phrase. If the question is unanswerable based on the information "
    "in the provided image, your answer should be unanswerable. Do not generate units. But if numerical units such as "
    "million, m, billion, B, or K are required, use the exact notation shown in the chart."
)
_UNANSWERABLE = (
    "If the question is unanswerable based on the information in the provided image, "
    "your answer should be unanswerable."
)
_END = (
    "If there are multiple answers, put them in brackets using this format ['Answer1', 'Answer2'].\n"
    "Remember to generate the final answer only without any additional text!"
)
CHARTQAPRO = {
    "Factoid": (
        "You are given a factoid question that you need to answer based on the provided image.\n" + f"{_SHORT}\n{_END}"
    ),
    "Hypothetical": (
        f"You are given a hypothetical question that you need to answer based on the provided image.\n{_SHORT}\n{_END}"
    ),
    "Multi Choice": (
        "You are given a question along with different possible answers. You need to select the correct answer from "
        "them based on the provided image.\nYour answer should be one of the options letters only: a, b, c or d (just "
        f"the letter itself without any additional text). {_UNANSWERABLE}\n{_END}"
    ),
    "Fact Checking": (
        "You are given a fact statement that you need to assess based on the provided image.\nYour answer should be "
        f"either true or false (without any additional text). {_UNANSWERABLE}\n{_END}"
    ),
    "Conversational": (
        "You are given a multi-turn conversation, and your job is to answer the final question based on the "
        f"conversation history and the information in the provided image.\n{_SHORT}\n{_END}"
    ),
}
