"""What every numeric loss promises, whatever it computes."""

import copy

import pytest
import torch

from smmd_lightning.losses import NumericLoss, NumericPositions, SMMDLoss
from smmd_lightning.losses.positions import digits_after
from smmd_lightning.vocabulary import NumericVocabulary

DIGITS = NumericVocabulary(range(3, 13), range(10))


@pytest.fixture
def loss() -> SMMDLoss:
    return SMMDLoss().bind(DIGITS)


def test_an_unbound_loss_says_what_to_do():
    with pytest.raises(RuntimeError, match=r"SMMDLoss does not know .* call bind\(NumericVocabulary"):
        SMMDLoss()(torch.zeros(1, 10), torch.tensor([0]))
    with pytest.raises(RuntimeError, match="call bind"):
        SMMDLoss().from_logits(torch.zeros(1, 2, 20), torch.zeros(1, 2, dtype=torch.int64))


def test_labels_are_shifted_exactly_once(loss):
    labels = torch.tensor([[-100, 0, 7, 4, 1, 12, 2]])
    logits = torch.zeros(1, 7, 20)
    logits[0, torch.arange(6), labels[0, 1:]] = 1000.0
    assert loss.from_logits(logits, labels).item() == 0
    assert loss.from_logits(logits, labels, shift=False).item() > 0.5
    assert loss.from_logits(logits[:, :-1], labels[:, 1:], shift=False).item() == 0


def test_from_logits_is_the_mean_over_the_numeric_positions_alone(loss):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 5, 20, generator=generator)
    labels = torch.tensor([[1, 3, 15, -100, 9], [-100, -100, 2, 12, 0]])  # numeric: 3, 9, 12
    expected = loss(torch.stack([logits[0, 0, 3:13], logits[0, 3, 3:13], logits[1, 2, 3:13]]), torch.tensor([0, 6, 9]))
    torch.testing.assert_close(loss.from_logits(logits, labels), expected.mean())
    logits[:, :, 13:] += 100  # what other tokens get is not its business
    torch.testing.assert_close(loss.from_logits(logits, labels), expected.mean())


@pytest.mark.parametrize("label", [1, -100])
def test_a_batch_without_numeric_target_gives_a_zero_joined_to_the_graph(loss, label):
    logits = torch.randn(2, 3, 20, requires_grad=True)
    value = loss.from_logits(logits, torch.full((2, 3), label))
    assert value.item() == 0
    value.backward()
    assert torch.equal(logits.grad, torch.zeros(2, 3, 20))


def test_no_position_gives_an_empty_vector_joined_to_the_graph(loss):
    logits = torch.randn(0, 10, requires_grad=True)
    costs = loss(logits, torch.empty(0, dtype=torch.int64))
    assert costs.shape == (0,)
    costs.sum().backward()
    assert logits.grad.shape == (0, 10)


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_logits_are_computed_in_float32(loss, dtype, autocast):
    logits = torch.randn(2, 6, 20, generator=torch.Generator().manual_seed(0)).to(dtype)
    labels = torch.tensor([[1, 3, 5, 7, 9, 11], [12, 10, 8, 6, 4, 2]])
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        value = loss.from_logits(logits.requires_grad_(), labels)
    assert value.dtype == torch.float32
    assert torch.equal(value, loss.from_logits(logits.detach().float(), labels))
    value.backward()
    assert logits.grad.dtype == dtype


def test_tables_are_in_no_checkpoint_and_a_bound_loss_loads_an_unbound_one(loss):
    assert list(loss.state_dict()) == list(loss.parameters()) == []
    loss.load_state_dict(SMMDLoss().state_dict(), strict=True)
    SMMDLoss().load_state_dict(loss.bind(NumericVocabulary(range(100), range(100))).state_dict(), strict=True)


def test_tables_stay_float32_when_the_model_is_cast_or_emptied(loss):
    before = loss.coupling_NN.clone()
    model = torch.nn.ModuleList([loss, torch.nn.Linear(2, 2)])
    for cast in (
        lambda: model.to(torch.bfloat16),
        model.half,
        model.double,
        lambda: model.to_empty(device="cpu"),
    ):
        cast()
        assert loss.coupling_NN.dtype == torch.float32
        assert torch.equal(loss.coupling_NN, before)


def test_binding_under_a_meta_device_computes_real_tables():
    with torch.device("meta"):
        loss = SMMDLoss(kernel="random").bind(NumericVocabulary(range(10), range(10)))
    assert loss.coupling_NN.device.type == "cpu"
    assert loss.from_logits(torch.zeros(1, 2, 10), torch.ones(1, 2, dtype=torch.int64)) > 0


def test_binding_again_replaces_the_tables(loss):
    loss.bind(NumericVocabulary(range(20), range(20)))
    assert loss(torch.zeros(1, 20), torch.tensor([19])).shape == (1,)
    assert copy.deepcopy(loss).vocabulary == loss.vocabulary


def test_a_head_smaller_than_the_vocabulary_is_named(loss):
    with pytest.raises(ValueError, match="token '9' has id 12, but the model's head has 12 rows"):
        loss.from_logits(torch.zeros(1, 2, 12), torch.zeros(1, 2, dtype=torch.int64))


def test_a_head_with_rows_to_spare_is_fine(loss):
    labels = torch.tensor([[0, 4, 150_000]])
    assert loss.from_logits(torch.zeros(1, 3, 151_936), labels) > 0


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((2, 9), (2,)), r"numeric_logits must be \(K, 10\), .* got \(2, 9\)"),
        (((2, 10), (3,)), r"target_index must be \(2,\), .* got \(3,\)"),
    ],
)
def test_shapes_that_disagree_are_named(loss, shapes, message):
    logits, target = shapes
    with pytest.raises(ValueError, match=message):
        loss(torch.zeros(logits), torch.zeros(target, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"labels \(B, T\)"):
        loss.from_logits(torch.zeros(1, 3, 20), torch.zeros(1, 4, dtype=torch.int64))


def test_neighbouring_numeric_tokens_are_one_number():
    positions = NumericPositions(torch.tensor([0, 0, 0, 1, 1, 1]), torch.tensor([4, 5, 8, 9, 10, 11]))
    assert positions.numbers().tolist() == [0, 0, 1, 2, 2, 2]
    spaced = torch.tensor([False, False, False, False, True, False])
    assert positions.numbers(spaced).tolist() == [0, 0, 1, 2, 3, 3]


def test_numbers_at_the_edge_of_two_rows_stay_apart():
    positions = NumericPositions(torch.tensor([0, 1]), torch.tensor([4, 5]))
    assert positions.numbers().tolist() == [0, 1]


def test_place_counts_digits_not_tokens():
    # "12" "345" "6" and, in another number, "7": 123456 is worth 12e4 + 345e1 + 6.
    assert digits_after(torch.tensor([0, 0, 0, 1]), torch.tensor([2, 3, 1, 1])).tolist() == [4, 1, 0, 0]


def test_numbers_and_places_equal_a_loop_over_the_tokens():
    generator = torch.Generator().manual_seed(0)
    for _ in range(20):
        row, column = (torch.rand(4, 30, generator=generator) < 0.6).nonzero(as_tuple=True)
        begins = torch.rand(len(row), generator=generator) < 0.2
        digits = torch.randint(1, 4, (len(row),), generator=generator)
        numbers: list[list[int]] = []
        for k in range(len(row)):
            goes_on = k > 0 and row[k] == row[k - 1] and column[k] == column[k - 1] + 1 and not begins[k]
            if goes_on:
                numbers[-1].append(k)
            else:
                numbers.append([k])
        number_K = NumericPositions(row, column).numbers(begins)
        place_K = digits_after(number_K, digits)
        for number, members in enumerate(numbers):
            for i, k in enumerate(members):
                assert number_K[k] == number
                assert place_K[k] == sum(digits[later].item() for later in members[i + 1 :])


def test_numeric_loss_is_abstract():
    with pytest.raises(TypeError, match="abstract"):
        NumericLoss()
