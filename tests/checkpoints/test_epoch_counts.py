"""After resuming at an epoch's end the next epoch counts as begun, and an epoch that goes on does not."""

from types import SimpleNamespace

import pytest

from smmd_lightning.checkpoints.resume import begin_next_epoch


@pytest.mark.parametrize(
    ("mid_epoch", "ended", "begun", "expected"),
    [(True, 1, 1, True), (True, 0, 1, False), (True, 1, 2, False), (False, 1, 1, False)],
)
def test_only_an_epoch_that_has_ended_is_left(mid_epoch, ended, begun, expected):
    left = []
    loop = SimpleNamespace(
        restarted_mid_epoch=mid_epoch,
        epoch_progress=SimpleNamespace(current=SimpleNamespace(ready=begun)),
        reset_restart_stage=lambda: left.append(True),
    )
    begin_next_epoch(SimpleNamespace(fit_loop=loop, current_epoch=ended))
    assert bool(left) == expected
