"""Every loss is a class path and plain settings in YAML, and comes back from what is saved."""

from pathlib import Path

import pytest
import yaml
from jsonargparse import ArgumentParser

from smmd_lightning import losses
from smmd_lightning.losses import NumericLoss

CONFIGS = {
    "SMMDLoss": "{term: mmd, kernel: laplace, bandwidths: [0.5, 2], squash: null, smoothness: 0.5}",
    "NTLWASLoss": "{squash: 9, reweigh: true}",
    "NTLRegressionLoss": "{error: huber}",
    "NTILLoss": "{place_growth: 0.5, hard: false}",
    "Dist2Loss": "{temperature: 2, whole_head: false}",
    "GaussianSmoothingLoss": "{bandwidth: 2, smoothing: 0.1}",
    "DigitEntropyLoss": "{}",
    "MixCELoss": "{}",
    "EMOLoss": "{}",
    "RAFTLoss": "{unit: relative}",
    "NTLNumberLoss": "{decimals: false}",
    "WholeNumberLoss": "{shape: laplace, widths: [0.5, 2], unit: relative, signed: true}",
    "PlaceWeightedLoss": "{base: 3, loss: {class_path: smmd_lightning.losses.SMMDLoss}}",
}


def parser() -> ArgumentParser:
    parser = ArgumentParser(exit_on_error=False)
    parser.add_subclass_arguments(NumericLoss, "loss")
    return parser


@pytest.mark.parametrize("name", CONFIGS)
def test_a_loss_is_built_from_yaml_and_its_config_survives_saving(name):
    settings = yaml.safe_load(CONFIGS[name])
    given = {"loss": {"class_path": f"smmd_lightning.losses.{name}", "init_args": settings}}
    config = parser().parse_string(yaml.safe_dump(given))
    loss = parser().instantiate_classes(config).loss
    assert type(loss) is getattr(losses, name)
    for key, value in settings.items():
        if key != "loss":
            kept = getattr(loss, key)
            assert kept == (tuple(value) if isinstance(value, list) else value)
    again = parser().instantiate_classes(parser().parse_string(parser().dump(config))).loss
    assert type(again) is type(loss)


FILES = sorted((Path(__file__).parents[2] / "configs" / "loss").glob("*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_the_loss_files_build_what_they_name(file):
    loss = parser().instantiate_classes(parser().parse_args(["--loss", str(file)])).loss
    assert type(loss).__name__ in file.read_text(encoding="utf-8")
    assert type(loss).__name__ in CONFIGS


def test_every_loss_has_a_config_here():
    concrete = {
        name
        for name in losses.__all__
        if isinstance(getattr(losses, name), type)
        and issubclass(getattr(losses, name), NumericLoss)
        and name != "NumericLoss"
    }
    assert concrete == set(CONFIGS)


def test_a_misspelt_term_is_refused_while_parsing():
    given = {"loss": {"class_path": "smmd_lightning.losses.SMMDLoss", "init_args": {"term": "mdm"}}}
    with pytest.raises(Exception, match="mdm"):
        parser().parse_string(yaml.safe_dump(given))
