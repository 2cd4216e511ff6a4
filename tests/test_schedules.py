import pytest
import torch

from smmd_lightning.schedules import WarmUpAndDecay, WarmupDecay


def rates(steps, **settings):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=2.0)
    schedule = WarmupDecay(optimizer, **settings)
    seen = []
    for _ in range(steps):
        seen.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return seen


def test_rises_in_a_line_and_falls_to_the_floor():
    seen = rates(11, warmup_steps=3, decay="linear", floor=0.25, total_steps=7)
    assert seen == pytest.approx([0.5, 1.0, 1.5, 2.0, 1.625, 1.25, 0.875, 0.5, 0.5, 0.5, 0.5])


def test_a_cosine_is_half_way_in_the_middle():
    seen = rates(5, warmup_steps=0, decay="cosine", total_steps=4)
    assert seen == pytest.approx([2.0, 2 * 0.8535534, 1.0, 2 * 0.1464466, 0.0], abs=1e-6)


def test_the_decay_may_begin_late():
    seen = rates(6, decay="linear", decay_share=0.5, total_steps=4)
    assert seen == pytest.approx([2.0, 2.0, 2.0, 1.0, 0.0, 0.0])


def test_constant_stays_up():
    assert rates(6, warmup_steps=1, decay="constant", total_steps=3) == pytest.approx([1.0, 2, 2, 2, 2, 2])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"warmup_steps": -1}, "got -1"),
        ({"floor": 2.0}, "got 2.0"),
        ({"decay_share": 0.0}, "got 0.0"),
        ({"decay": "steps"}, "got 'steps'"),
    ],
)
def test_impossible_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        rates(1, **settings)


def test_without_a_known_end_nothing_decays():
    shape = WarmUpAndDecay(warmup_steps=2, decay="cosine")
    assert [shape.factor(step, None) for step in (0, 1, 2, 99)] == pytest.approx([1 / 3, 2 / 3, 1, 1])


def test_a_state_keeps_the_place_and_not_the_settings():
    def made(**settings):
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=settings.pop("lr"))
        return optimizer, WarmupDecay(optimizer, decay="linear", **settings)

    optimizer, schedule = made(lr=2.0, total_steps=4)
    for _ in range(4):
        optimizer.step()
        schedule.step()
    longer, again = made(lr=3.0, total_steps=6)
    longer.load_state_dict(optimizer.state_dict())
    assert longer.param_groups[0]["lr"] == 0
    again.load_state_dict(schedule.state_dict())
    assert longer.param_groups[0]["lr"] == again.get_last_lr()[0] == pytest.approx(1.0)
    longer.step()
    again.step()
    assert longer.param_groups[0]["lr"] == pytest.approx(0.5)
