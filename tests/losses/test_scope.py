"""Which tokens are the final answer's, told from texts; and that the objective acts on these alone."""

import re

import pytest
import torch

from datamodules.base import NumericDataModule
from smmd_lightning import IGNORE_INDEX, NumericVocabulary, SMMDLoss
from smmd_lightning.backbones import LanguageBackbone
from smmd_lightning.loss_sums import StepCounts
from smmd_lightning.losses import WholeNumberLoss
from smmd_lightning.losses.scope import FinalNumbers
from smmd_lightning.objective import NumericObjective
from smmd_lightning.types import NumericExample

TEXTS = {
    "48/2=24, then 48+24=72": "72",
    "It is 3.75.": "3.75",
    "5 and at 04:35:10 o'clock": "04:35:10",
    "7 makes 1,250,000.5 in all": "1,250,000.5",
    "12 of 16 is 3/4": "3/4",
    "from 3 to 2026!": "2026",
    "2 .5": "5",
    "no number": "",
}


def made(group):
    """A vocabulary of characters, and of groups of digits; every other character is a token of its own."""
    texts = [f"{value:0{width}d}" for width in range(1, group + 1) for value in range(10**width)]
    pieces = {text: 200 + place for place, text in enumerate(texts)} | {mark: ord(mark) for mark in ".,:/-"}
    return NumericVocabulary([pieces[text] for text in texts], [int(text) for text in texts], texts, pieces, group)


def made_ids(text, numbers):
    cut = re.findall(rf"[0-9]{{1,{numbers.group}}}|[^0-9]", text)
    return [numbers.pieces.get(piece, ord(piece[0])) for piece in cut]


@pytest.mark.parametrize("group", [1, 3])
@pytest.mark.parametrize("text", TEXTS)
def test_the_last_number_of_a_text_is_found_in_its_tokens(group, text):
    numbers = made(group)
    targets = torch.tensor(made_ids(text, numbers))
    found = FinalNumbers(numbers)(targets, numbers.index_of(targets))
    assert targets[found].tolist() == [token for token in made_ids(TEXTS[text], numbers) if token >= 200]
    # The digits of the number end where its text does, so they are the last ones and no others of the same value.
    digits = (targets >= 200).nonzero().flatten().tolist()
    assert found.nonzero().flatten().tolist() == digits[len(digits) - int(found.sum()) :]


@pytest.mark.parametrize("name", ["qwen3", "llama3", "mistral_v3_spm", "smollm2"])
def test_real_tokenizers(name, real_tokenizers):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(real_tokenizers / name)
    numbers = NumericVocabulary.from_tokenizer(tokenizer, leading_zeros=True)
    for text, expected in TEXTS.items():
        targets = torch.tensor(tokenizer.encode(text, add_special_tokens=False))
        found = FinalNumbers(numbers)(targets, numbers.index_of(targets))
        digits = "".join(tokenizer.decode([token]).strip() for token in targets[found].tolist())
        assert digits == re.sub(r"\D", "", expected), text


def test_answers_end_with_their_row_and_where_nothing_is_supervised():
    numbers, gap = made(1), IGNORE_INDEX
    one, two = numbers.pieces["1"], numbers.pieces["2"]
    rows = torch.tensor([[gap, one, 65, two], [two, one, gap, two], [65, 66, gap, gap]])
    final = FinalNumbers(numbers)
    expected = [[0, 0, 0, 1], [1, 1, 0, 1], [0, 0, 0, 0]]
    assert final(rows, numbers.index_of(rows)).int().tolist() == expected
    flat = torch.nn.functional.pad(rows, (0, 1), value=gap).flatten()
    assert final(flat, numbers.index_of(flat)).view(3, 5)[:, :4].int().tolist() == expected


class Sums(NumericDataModule):
    def __init__(self, **common):
        super().__init__("tiny:llama", **common)

    def source(self, split):
        return self

    def __len__(self):
        return 8

    def example(self, key):
        left, right = key.index + 3, 7 * key.index
        answer = f"{left}+{right}={left + right}, so {left + right}.5"
        return NumericExample(str(key.index), "Sum?", answer, meta={"task": "math"})


@pytest.mark.parametrize("loss", [SMMDLoss, WholeNumberLoss])
@pytest.mark.parametrize("pack", [False, True])
def test_the_objective_acts_on_final_numbers_alone_and_a_window_counts_them(loss, pack):
    torch.manual_seed(0)
    data = Sums(batch_size=4, pack=pack)
    batches = list(data.train_dataloader())
    backbone = LanguageBackbone("tiny:llama", head_chunk=7)
    backbone.load()
    tokenizer = data.collator.tokenizer
    numbers = NumericVocabulary.from_tokenizer(tokenizer)
    objective = NumericObjective(loss(), 1.0, scope="answer")
    objective.bind(numbers, backbone.head_rows)
    for batch in batches:
        output = objective(backbone, batch.inputs, batch.labels)
        answers = [example.answer.rpartition(" ")[2] for example in batch.examples]
        assert output.numeric == sum(len(answer) - 1 for answer in answers)  # one token a digit, less the point
        assert objective.count(batch.window_targets).tolist() == [output.supervised, output.numeric]
        # The same cost as when nothing but the final number is supervised.
        final = labels_of_the_tail(batch.labels, tokenizer)
        if loss is SMMDLoss:
            final = torch.where(numbers.is_numeric(final), final, IGNORE_INDEX)
        logits = backbone.head(backbone.encode(batch.inputs))
        expected = objective.numeric_loss.from_logits(logits, final)
        torch.testing.assert_close(output.metrics["numeric"], expected.detach(), rtol=1e-5, atol=1e-7)
        everything = NumericObjective(loss(), 1.0)
        everything.bind(numbers, backbone.head_rows)
        assert everything(backbone, batch.inputs, batch.labels).numeric > output.numeric


def labels_of_the_tail(labels, tokenizer):
    """The labels behind the last space of each answer: its final number and the end token."""
    kept, behind = labels.clone(), False
    for row in kept:
        for place in range(len(row) - 1, -1, -1):
            if row[place] == IGNORE_INDEX:
                behind = False
            elif behind or tokenizer.decode([row[place]]).startswith(" "):
                behind, row[place] = True, IGNORE_INDEX
        behind = False
    return kept


def test_cut_into_micro_batches_of_unequal_answers_it_is_one_mean():
    torch.manual_seed(0)
    backbone = LanguageBackbone("tiny:llama")
    backbone.load()
    data = Sums(batch_size=8)
    batch = next(iter(data.train_dataloader()))
    objective = NumericObjective(SMMDLoss(), 1.0, scope="answer")
    objective.bind(NumericVocabulary.from_tokenizer(data.collator.tokenizer), backbone.head_rows)
    whole = objective(backbone, batch.inputs, batch.labels)
    counts = StepCounts(*objective.count(batch.window_targets).tolist())
    parts = [
        objective(backbone, {name: value[rows] for name, value in batch.inputs.items()}, batch.labels[rows], counts)
        for rows in (slice(0, 1), slice(1, 8))
    ]
    torch.testing.assert_close(parts[0].loss + parts[1].loss, whole.loss)


def test_another_scope_is_refused():
    with pytest.raises(ValueError, match="scope must be answer or all, got 'last'"):
        NumericObjective(SMMDLoss(), 1.0, scope="last")
