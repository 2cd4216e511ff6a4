"""Everything that needs two processes but no process of its own; what each scenario does is in `scenario_*.py`."""

import pytest
from scenarios import SCENARIOS


@pytest.mark.distributed
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SCENARIOS)
def test_on_two_processes(name, outcomes):
    assert not isinstance(outcomes[name], str), outcomes[name]
