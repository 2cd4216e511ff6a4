"""Whole-number loss against an enumeration of answers, and through the objective."""

import math

import pytest
import torch

from smmd_lightning.answers.nearby import AnswerLaw
from smmd_lightning.losses import PlaceWeightedLoss, WholeNumberLoss
from smmd_lightning.objective import NumericObjective
from smmd_lightning.vocabulary import NumericVocabulary

MARKS = ["-", ".", ":"]
END = 1200
HEAD = 1210


def vocabulary(group: int) -> NumericVocabulary:
    """Tokens for all groups of digits, leading zeros too, from id 3 on; then marks."""
    texts = [f"{value:0{width}d}" for width in range(1, group + 1) for value in range(10**width)]
    pieces = {text: 3 + place for place, text in enumerate(texts + MARKS)}
    plain = [text for text in texts if str(int(text)) == text]
    return NumericVocabulary([pieces[text] for text in plain], [int(text) for text in plain], plain, pieces, group)


def tokens_of(text: str, numbers: NumericVocabulary) -> list[int]:
    """The ids of a text, cut one character after the other."""
    runs: list[str] = []
    for character in text:
        room = runs and runs[-1].isdigit() and len(runs[-1]) < numbers.group
        if character.isdigit() and room:
            runs[-1] += character
        else:
            runs.append(character)
    return [numbers.pieces[run] for run in runs]


def gaussian(distance: float) -> float:
    return math.exp(-((distance / 1.5) ** 2) / 2)


def time_text(minutes: int) -> str:
    return f"{minutes // 60 % 12 or 12:02d}:{minutes % 60:02d}"


CASES = {
    "one digit more": ("9", {str(v): gaussian(v - 9) for v in range(200)}),
    "two digits more": ("99", {str(v): gaussian(v - 99) for v in range(200)}),
    "one digit fewer": ("100", {str(v): gaussian(v - 100) for v in range(200)}),
    "four digits": ("1000", {str(v): gaussian(v - 1000) for v in range(2000)}),
    "zero": ("0", {str(v): gaussian(v) for v in range(200)}),
    "decimals": ("9.98", {f"{v / 100:.2f}": gaussian(v - 998) for v in range(2000)}),
    "leading zeros": ("0098", {f"{v:04d}": gaussian(v - 98) for v in range(2000)}),
    "negative": ("-10", {str(-v): gaussian(v - 10) for v in range(1, 200)}),
    "an hour more": ("09:59", {time_text(v): gaussian(v - 599) for v in range(720)}),
    "round the dial": (
        "12:59",
        {time_text(v): gaussian(min(abs(v - 59), 720 - abs(v - 59))) for v in range(720)},
    ),
}


def by_enumeration(numbers, text, weights):
    """Conditional masses at each token of the true answer and at its end, summed over all answers."""
    answers = [([*tokens_of(answer, numbers), END], weight) for answer, weight in weights.items()]
    true = [*tokens_of(text, numbers), END]
    steps = []
    for place in range(len(true)):
        inside = [(ids, weight) for ids, weight in answers if ids[:place] == true[:place]]
        total = sum(weight for _, weight in inside)
        masses = torch.zeros(HEAD, dtype=torch.float64)
        for ids, weight in inside:
            masses[ids[place]] += weight / total
        steps.append(masses)
    return torch.stack(steps)


@pytest.mark.parametrize("group", [1, 3])
@pytest.mark.parametrize("name", CASES)
def test_targets_and_loss_equal_the_enumeration_of_all_answers(name, group):
    text, weights = CASES[name]
    numbers = vocabulary(group)
    loss = WholeNumberLoss(widths=[1.5]).bind(numbers)
    ids = tokens_of(text, numbers)
    labels = torch.tensor([[-100, 0, *ids, END, 2]])
    expected_SV = by_enumeration(numbers, text, weights)

    found = loss.soft_targets(labels)
    got_SV = torch.zeros_like(expected_SV)
    got_SV.index_put_((found.place_P - 1, found.token_P), found.mass_P.double(), accumulate=True)
    # Masses are float32; the law leaves out less than 1e-7.
    torch.testing.assert_close(got_SV, expected_SV, rtol=1e-6, atol=1e-6)

    logits = torch.randn(1, labels.shape[1], HEAD, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    log_p_SV = logits.log_softmax(2)[0, 1 : 1 + len(expected_SV)]
    divergence = (torch.xlogy(expected_SV, expected_SV) - expected_SV * log_p_SV).sum()
    numeric = int(numbers.is_numeric(labels).sum())
    torch.testing.assert_close(loss.from_logits(logits, labels), divergence / max(numeric, 1), rtol=1e-5, atol=0)


def test_the_loss_is_the_divergence_of_whole_answers_where_the_law_is_known_to_a_token():
    """A model that believes q itself costs nothing, and one that is sure of the truth costs more."""
    numbers = vocabulary(1)
    loss = WholeNumberLoss(widths=[1.0]).bind(numbers)
    labels = torch.tensor([[-100, *tokens_of("250", numbers), END]])
    found = loss.soft_targets(labels)
    logits = torch.full((1, 5, HEAD), -30.0, dtype=torch.float64)
    logits[0, found.place_P, found.token_P] = found.mass_P.double().log()
    assert loss.from_logits(logits, labels).item() == pytest.approx(0, abs=1e-6)
    sure = torch.full((1, 5, HEAD), -30.0)
    sure[0, torch.arange(4), labels[0, 1:]] = 0.0
    assert loss.from_logits(sure, labels).item() > 1


def test_nearer_answers_cost_less_across_carries():
    numbers = vocabulary(1)
    loss = WholeNumberLoss(widths=[2.0]).bind(numbers)
    labels = torch.tensor([[-100, *tokens_of("200", numbers), END]])

    def cost(first):  # unsure between the right first digit and another
        logits = torch.zeros(1, 5, HEAD)
        logits[0, 0, tokens_of(str(first), numbers)[0]] += 5
        return loss.from_logits(logits, labels).item()

    assert cost(1) < cost(3)  # 199 is near 200, 3xx is not


def test_only_numbers_have_targets_and_each_in_its_place():
    numbers = vocabulary(1)
    loss = WholeNumberLoss().bind(numbers)
    dot, colon, minus = (numbers.pieces[mark] for mark in (".", ":", "-"))
    three, five = numbers.pieces["3"], numbers.pieces["5"]
    labels = torch.tensor(
        [
            [-100, 0, three, dot, 0, -100],  # "3." and a word: the point ends the number
            [-100, three, minus, five, dot, five],  # a difference: 3, then 5.5 at the row's end
            [-100, three, dot, five, dot, five],  # a version
            [-100, three, colon, five, 0, -100],  # 3:5 is no time
        ]
    )
    found = loss.soft_targets(labels)
    # Supervised positions: row 0 has 0 to 3, row 1 has 4 to 8, row 2 has 9 to 13, row 3 has 14 to 17.
    assert sorted(set(found.place_P.tolist())) == [1, 2, 4, 5, 6, 7, 8]
    ends = [
        round(found.mass_P[(found.place_P == 2) & (found.token_P == dot)].item(), 3),
        round(found.mass_P[(found.place_P == 7) & (found.token_P == dot)].item(), 3),
    ]
    assert ends == [1.0, 1.0]
    sums = torch.zeros(18).index_add(0, found.place_P, found.mass_P)
    torch.testing.assert_close(sums[sums > 0], torch.ones(7), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_through_the_objective_in_chunks_as_from_full_logits(chunk):
    numbers = vocabulary(1)
    labels = torch.full((3, 9), -100)
    for row, text in enumerate(["09:59", "7", "12.5"]):
        ids = [*tokens_of(text, numbers), END]
        labels[row, 3 : 3 + len(ids)] = torch.tensor(ids)
    logits = torch.randn(3, 9, HEAD, generator=torch.Generator().manual_seed(1), dtype=torch.float64)

    def backbone(inputs, given, score):
        mask = given[:, 1:] != -100
        rows, targets = inputs["logits"][:, :-1][mask], given[:, 1:][mask]
        parts = [score(*part) for part in zip(rows.split(chunk), targets.split(chunk), strict=True)]
        return tuple(torch.cat(part) for part in zip(*parts, strict=True))

    results = []
    for through in (True, False):
        leaf = logits.clone().requires_grad_()
        if through:
            made = NumericObjective(WholeNumberLoss(), 0.7)
            made.bind(numbers, HEAD)
            output = made(backbone, {"logits": leaf}, labels)
            assert (output.supervised, output.numeric) == (13, 8)
            value = output.loss
        else:
            loss = WholeNumberLoss().bind(numbers)
            ce = torch.nn.functional.cross_entropy(leaf[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
            value = ce + 0.7 * loss.from_logits(leaf, labels)
        results.append((value.detach(), torch.autograd.grad(value, leaf)[0]))
    torch.testing.assert_close(results[0], results[1], rtol=1e-12, atol=1e-12)


def test_a_batch_without_numbers_costs_nothing_and_stays_joined_to_the_graph():
    loss = WholeNumberLoss().bind(vocabulary(1))
    logits = torch.randn(1, 3, HEAD, requires_grad=True)
    value = loss.from_logits(logits, torch.tensor([[-100, 0, 1]]))
    value.backward()
    assert value.item() == 0
    assert torch.equal(logits.grad, torch.zeros_like(logits))


def test_a_tokenizer_without_a_rule_for_digits_is_refused():
    with pytest.raises(ValueError, match="WholeNumberLoss must know how numbers are cut"):
        WholeNumberLoss().bind(NumericVocabulary(range(10), range(10), group=None))
    with pytest.raises(ValueError, match="group of 1 digits and for the minus sign"):
        WholeNumberLoss(signed=True).bind(NumericVocabulary(range(10), range(10)))
    with pytest.raises(ValueError, match="WholeNumberLoss sees whole answers"):
        PlaceWeightedLoss(WholeNumberLoss())
    with pytest.raises(RuntimeError, match="from_logits"):
        WholeNumberLoss().bind(vocabulary(1))(torch.zeros(1, 10), torch.tensor([0]))


@pytest.mark.parametrize(("name", "group"), [("qwen3", 1), ("smollm2", 1), ("mistral_v3_spm", 1), ("llama3", 3)])
@pytest.mark.parametrize("text", ["03:05", "-12.50", "20260", "The sum is 99."])
def test_real_tokenizers_write_the_neighbours_that_the_targets_say(name, group, text, real_tokenizers):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(real_tokenizers / name)
    numbers = NumericVocabulary.from_tokenizer(tokenizer)
    assert numbers.group == group
    number = text.removeprefix("The sum is ").rstrip(".")
    ids = tokenizer.encode(text, add_special_tokens=False)
    end = tokenizer.convert_tokens_to_ids(tokenizer.all_special_tokens[0])
    found = WholeNumberLoss().bind(numbers).soft_targets(torch.tensor([[-100, *ids, end]]))
    expected: dict[tuple[int, int], float] = {}
    total = [0.0] * (len(ids) + 1)
    for answer, mass in AnswerLaw().near(number):
        written = [*tokenizer.encode(text.replace(number, answer), add_special_tokens=False), end]
        same = [a == b for a, b in zip(written, [*ids, end], strict=False)]
        for place in range(len(same)):
            if all(same[:place]):
                expected[place, written[place]] = expected.get((place, written[place]), 0.0) + mass
                total[place] += mass
    for place, token, mass in zip(*(part.tolist() for part in found), strict=True):
        assert mass == pytest.approx(expected[place, token] / total[place], rel=1e-5, abs=1e-9)
    assert set(found.place_P.tolist()) >= {place for (place, _), mass in expected.items() if mass / total[place] < 0.99}
