"""DEL, MixCE, RAFT and the number-level NTL: formulas as loops, a peer package, and decimals in a text."""

import ntloss
import pytest
import torch
from tokenizers import Tokenizer, models
from torch.nn import functional as F
from transformers import PreTrainedTokenizerFast

from smmd_lightning.losses import DigitEntropyLoss, MixCELoss, NTLNumberLoss, RAFTLoss
from smmd_lightning.objective import NumericObjective
from smmd_lightning.vocabulary import NumericVocabulary

POINT, WORD = 10, 11
HEAD = 14
PIECES = {**{str(digit): digit for digit in range(10)}, ".": POINT}
DIGITS = NumericVocabulary(range(10), range(10), list("0123456789"), PIECES)

ROWS = {
    "ones": "7",
    "integer": "305",
    "decimals": "12.34",
    "zero": "0.05",
    "sentence": "42.",
    "point first": ".5",
    "two numbers": "31x4.2",
}


def ids_of(text):
    return [PIECES.get(character, WORD) for character in text]


def head(rows, seed=0):
    """Logits (B, T, V) and labels (B, T), already shifted."""
    width = max(map(len, rows)) + 1
    labels = torch.full((len(rows), width), -100)
    for row, text in enumerate(rows):
        labels[row, 1 : 1 + len(text)] = torch.tensor(ids_of(text))
    logits = 2 * torch.randn(len(rows), width, HEAD, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return logits, labels


def numbers_of(labels):
    """Lists of (row, column, place) of each number, by reading the rows from left to right."""
    found = []
    for row, ids in enumerate(labels.tolist()):
        column = 0
        while column < len(ids):
            if not 0 <= ids[column] < 10:
                column += 1
                continue
            end = column
            while end < len(ids) and 0 <= ids[end] < 10:
                end += 1
            members = [(row, each, end - 1 - each) for each in range(column, end)]
            if end + 1 < len(ids) and ids[end] == POINT and 0 <= ids[end + 1] < 10:
                place, end = -1, end + 1
                while end < len(ids) and 0 <= ids[end] < 10:
                    members.append((row, end, place))
                    place, end = place - 1, end + 1
            found.append(members)
            column = end
    return found


def del_looped(logits, labels):
    costs = []
    for members in numbers_of(labels):
        for row, column, place in members:
            z, y = logits[row, column, :10], int(labels[row, column])
            p = z.softmax(0)
            weight = 2 * (place + 1) if place >= 0 else 1.02 ** (place - 1)
            terms = [p[j] * -(z[j].sigmoid().log() if j == y else (-z[j]).sigmoid().log()) for j in range(10)]
            costs.append(weight * sum(terms) / 10)
    return torch.stack(costs).mean()


def raft_looped(logits, labels, relative=False):
    costs = []
    for members in numbers_of(labels):
        true = sum(int(labels[row, column]) * 10.0**place for row, column, place in members)
        expected = sum(
            (logits[row, column].softmax(0)[:10] * torch.arange(10)).sum() * 10.0**place
            for row, column, place in members
        )
        error = (expected - true) / (max(true, 1.0) if relative else 1.0)
        costs += [error**2] * len(members)
    return torch.stack(costs).mean()


@pytest.mark.parametrize(
    ("loss", "looped"),
    [
        (DigitEntropyLoss, del_looped),
        (RAFTLoss, raft_looped),
        (lambda: RAFTLoss("relative"), lambda *batch: raft_looped(*batch, relative=True)),
    ],
    ids=["del", "raft", "raft-relative"],
)
@pytest.mark.parametrize("rows", [[text] for text in ROWS.values()] + [list(ROWS.values())], ids=[*ROWS, "all"])
def test_equal_to_the_formula_written_as_loops(loss, looped, rows):
    logits, labels = head(rows)
    values = []
    for cost in (lambda z: loss().bind(DIGITS).from_logits(z, labels, shift=False), lambda z: looped(z, labels)):
        leaf = logits.clone().requires_grad_()
        value = cost(leaf)
        values.append((value.detach(), torch.autograd.grad(value, leaf)[0]))
    torch.testing.assert_close(values[0], values[1], rtol=1e-9, atol=1e-12)


def test_del_has_the_published_weights():
    """The authors weigh ones 2, tens 4, tenths 1.02^-2, hundredths 1.02^-3."""
    loss = DigitEntropyLoss().bind(DIGITS)

    def weight(text, column):  # relative to a lone digit, which weighs 2
        labels = torch.tensor([ids_of(text)])
        logits = torch.zeros(1, len(text), HEAD)
        uniform = loss.from_logits(torch.zeros(1, 1, HEAD), torch.tensor([[7]]), shift=False).item() / 2
        logits[0, :, :10] = 1000 * F.one_hot(labels.clamp(max=9), 10)
        logits[0, column] = 0
        digits = sum(character.isdigit() for character in text)
        return loss.from_logits(logits, labels, shift=False).item() * digits / uniform

    assert [weight("12.34", column) for column in (0, 1, 3, 4)] == pytest.approx([4, 2, 1.02**-2, 1.02**-3], rel=1e-5)


@pytest.mark.parametrize("decimals", [False, True])
def test_number_level_ntl_equals_the_package_number_by_number(decimals):
    table = {"[UNK]": WORD, ".": POINT, **{str(digit): digit for digit in range(10)}, "a": 12, "b": 13}
    model = Tokenizer(models.WordLevel(table, unk_token="[UNK]"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=model, unk_token="[UNK]")
    theirs = ntloss.NumberLevelLoss(tokenizer, vocab_size=HEAD, float_level=decimals, reweigh=False)
    loss = NTLNumberLoss(decimals).bind(DIGITS)
    logits, labels = head([text for text in ROWS.values() if text != ".5"])
    logits = logits.float()
    expected = theirs(logits, labels, reduction="none")  # at each number's first digit
    for members in numbers_of(labels):
        runs = [members] if decimals else [[m for m in members if m[2] >= 0], [m for m in members if m[2] < 0]]
        for run in filter(None, runs):
            alone = torch.full_like(labels, -100)
            row, low, high = run[0][0], run[0][1], run[-1][1] + 1
            alone[row, low:high] = labels[row, low:high]
            got = loss.from_logits(logits, alone, shift=False)
            torch.testing.assert_close(got, expected[row, low], rtol=1e-5, atol=1e-6)


def test_raft_is_the_squared_error_of_the_models_expectation_over_all_answers_of_one_token():
    logits, labels = head(["7"])
    p = logits[0, 1].softmax(0)
    expectation = sum(p[y] * y for y in range(10))
    got = RAFTLoss().bind(DIGITS).from_logits(logits, labels, shift=False)
    torch.testing.assert_close(got, (expectation - 7) ** 2)


def test_raft_survives_forty_digits():
    logits = torch.zeros(1, 40, HEAD, requires_grad=True)
    value = RAFTLoss().bind(DIGITS).from_logits(logits, torch.full((1, 40), 9), shift=False)
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(logits.grad).all()


def test_mixce_gradient_is_that_of_cross_entropy_times_the_probability_of_the_truth():
    logits, labels = head(["305"])
    mixed, plain = (logits.clone().requires_grad_() for _ in range(2))
    MixCELoss().bind(DIGITS).from_logits(mixed, labels, shift=False).backward()
    log_p = plain[0, 1:4].log_softmax(1).gather(1, labels[0, 1:4, None]).squeeze(1)
    (-(log_p.detach().exp() * log_p)).mean().backward()
    torch.testing.assert_close(mixed.grad, plain.grad)


@pytest.mark.parametrize("loss", [DigitEntropyLoss, RAFTLoss, NTLNumberLoss, MixCELoss])
def test_the_objective_sees_the_decimal_points_that_full_logits_show(loss):
    logits, labels = head(["x12.34", "0.5x"])

    def backbone(inputs, given, score):
        mask = given[:, 1:] != -100
        return score(inputs["logits"][:, :-1][mask], given[:, 1:][mask])

    objective = NumericObjective(loss(), 1.0)
    objective.bind(DIGITS, HEAD)
    output = objective(backbone, {"logits": logits}, labels)
    expected = loss().bind(DIGITS).from_logits(logits, labels)
    torch.testing.assert_close(output.metrics["numeric"].double(), expected, rtol=1e-6, atol=1e-9)
