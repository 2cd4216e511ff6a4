"""From samples to batches: order, collating, packing, worker processes, and what the trainer may ask."""
