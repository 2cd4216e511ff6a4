import math
import re
import xml.etree.ElementTree as ET

import pytest
import torch

from smmd_lightning.commands.vocabulary import main
from smmd_lightning.losses import Dist2Loss, NTLWASLoss, SMMDLoss
from smmd_lightning.report.loss_page import SURE, landscape, loss_page, losses, one_a_value
from smmd_lightning.vocabulary import NumericVocabulary


@pytest.fixture
def digits():
    return NumericVocabulary(range(10), range(10))


def test_cross_entropy_sees_right_and_wrong_alone(digits):
    cost_N = landscape(None, digits, 4)
    assert cost_N[4].item() == pytest.approx(-math.log(SURE))
    assert cost_N[[3, 9]].tolist() == pytest.approx([-math.log((1 - SURE) / 9)] * 2)


def test_earth_mover_cost_is_the_mean_distance(digits):
    cost_N = landscape(NTLWASLoss(), digits, 4)
    rest = (1 - SURE) / 9
    for predicted in range(10):
        expected = sum(abs(j - 4) * (SURE if j == predicted else rest) for j in range(10))
        assert cost_N[predicted].item() == pytest.approx(expected, rel=1e-5)


def test_smmd_costs_what_the_quadratic_form_says(digits):
    loss = SMMDLoss()
    cost_N = landscape(loss, digits, 4)
    kernel = torch.exp(-((torch.arange(10.0)[:, None] - torch.arange(10.0)) ** 2) / 8).double()
    degree = kernel.sum(1)
    form = kernel + (degree.diag() - kernel) / (2 * degree.mean())
    for predicted in range(10):
        r = torch.full((10,), (1 - SURE) / 9, dtype=torch.float64)
        r[predicted] = SURE
        r[4] -= 1
        assert cost_N[predicted].item() == pytest.approx((r @ form @ r).item(), rel=1e-5)


def test_a_loss_over_the_whole_head_is_given_a_head_of_numbers_alone(digits):
    whole, alone = (landscape(Dist2Loss(whole_head=whole), digits, 4) for whole in (True, False))
    torch.testing.assert_close(whole, alone)


@pytest.mark.parametrize("name", losses())
def test_every_loss_is_cheapest_at_the_true_number(digits, name):
    assert landscape(losses()[name], digits, 4).argmin() == 4


def test_twins_are_shown_once():
    twins = NumericVocabulary([5, 6, 7, 8], [1, 1, 2, 2], ["1", " 1", "2", " 2"])
    kept = one_a_value(twins)
    assert (kept.token_ids.tolist(), kept.surfaces) == ([5, 7], ("1", "2"))


@pytest.mark.parametrize("count", [10, 1000])
def test_the_page_is_drawn_for_small_and_large_vocabularies(count):
    page = loss_page(NumericVocabulary(range(count), range(count)), "folder/<model>", target=7)
    assert "&lt;model&gt;" in page
    assert "when 7 is true" in page
    drawings = re.findall(r"<svg.*?</svg>", page, re.S)
    assert len(drawings) == 3 + 2 + 1 + len(losses())
    for drawing in drawings:
        ET.fromstring(drawing.replace("&#160;", " "))
        assert not re.search(r'[",-](nan|inf)\b', drawing)
    assert "<script" not in page
    assert len(page) < 1_500_000


def test_a_target_outside_the_vocabulary_is_named(digits):
    with pytest.raises(ValueError, match="The target 12 is no number of this vocabulary, which has 10 from 0 to 9"):
        loss_page(digits, "x", target=12)


def test_the_command_writes_the_page(tmp_path, capsys):
    from smmd_lightning.backbones.locate import locate

    folder = str(locate("tiny:llama"))
    file = tmp_path / "loss.html"
    assert main([folder, "--plot", str(file), "--target", "4"]) == 0
    assert capsys.readouterr().out.endswith(f"\n{file}\n")
    assert "when 4 is true" in file.read_text("utf-8")
    assert main([folder, "--plot", str(file), "--target", "4.5"]) == 1
    assert "The target 4.5 is no number" in capsys.readouterr().err
