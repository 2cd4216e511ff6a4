"""What two processes know of each other's data."""

import pytest
import torch.distributed as dist
from sums import Sums, SumsData, scenario

from datamodules.pipeline.batch_builder import BatchBuilder
from datamodules.pipeline.loader import NumericLoader
from datamodules.pipeline.sampler import MicroBatchSampler
from smmd_lightning.types import BadSample


class Broken(Sums):
    """The last two samples cannot be used; each process has one of them."""

    def example(self, key):
        if key.index >= self.size - 2:
            raise BadSample(f"row {key.index} is broken")
        return super().example(key)


@scenario
def bad_samples_of_all_processes_count_together(folder):
    rank = dist.get_rank()
    sampler = MicroBatchSampler(40, 1, rank=rank, world_size=2, seed=0, shuffle=False)
    loader = NumericLoader(BatchBuilder(Broken(40), 40, SumsData().collator), sampler, max_bad_share=0.04)
    if rank == 0:
        list(loader)  # one of 40 is no more than 4 %
    dist.barrier()
    if rank == 1:
        with pytest.raises(RuntimeError, match=r"(?s)2 of 40 samples.*row 39 is broken.*row 38 is broken"):
            list(loader)
    dist.barrier()
    assert loader.state_dict()["bad"] == [38, 39]
