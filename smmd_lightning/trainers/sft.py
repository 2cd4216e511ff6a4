"""TRL's `SFTTrainer` with cross-entropy and any numeric loss.

One real example::

    trainer = SMMDSFTTrainer(
        model="Qwen/Qwen2.5-1.5B-Instruct", args=SFTConfig(...), train_dataset=rows,
        numeric_loss=SMMDLoss(), loss_weight=0.3,
    )
"""

from __future__ import annotations

try:
    from trl import SFTTrainer
except ImportError as error:
    raise ImportError("SMMDSFTTrainer needs TRL: pip install 'smmd_lightning[trl]'") from error

from smmd_lightning.trainers.transformers_trainer import NumericTraining


class SMMDSFTTrainer(NumericTraining, SFTTrainer):
    """TRL's `SFTTrainer` with cross-entropy and a numeric loss; see `NumericTraining`.

    Templates, masks, packing and adapters are TRL's own; what it labels is what is supervised here.
    """
