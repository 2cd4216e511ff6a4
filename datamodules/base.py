"""The one LightningDataModule that all tasks share: splits, samplers, loaders.

A task adds `source(split)` and nothing else. `val_dataloader` gives two loaders: rows with answers (teacher forcing),
and prompts for generation; `test` and `predict` give prompts only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any

from lightning.pytorch import LightningDataModule
from lightning.pytorch.utilities.seed import isolate_rng

from datamodules.pipeline.batch_builder import BatchBuilder
from datamodules.pipeline.collate import Collator
from datamodules.pipeline.first_look import characters_of_rows, look_at_first_samples, questions_of_tasks
from datamodules.pipeline.loader import NumericLoader
from datamodules.pipeline.sampler import MicroBatchSampler
from datamodules.pipeline.trainer_rules import check_trainer, micro_batches
from datamodules.sources.jitter import JitteredSource
from datamodules.sources.origins import Split
from smmd_lightning.answers.nearby import AnswerLaw
from smmd_lightning.backbones.processors import load_processor
from smmd_lightning.types import NumericExample, SampleKey, Source


class NumericDataModule(LightningDataModule, ABC):
    """Base of all data modules.

    Args:
        processor: Folder or hub name of the model's processor. LightningCLI links it to the backbone's path.
        batch_size: Rows of a micro-batch of one process.
        eval_batch_size: Rows of an evaluation batch of one process. None: `batch_size`.
        num_workers: Worker processes that read, draw and tokenise. 0: in the training process.
        seed: Seed of order, drawings and splits.
        max_length: Most tokens of a row, image tokens included; longer samples are skipped and counted. None: no limit.
        limit: Most samples of each split. None: all.
        generation_limit: Most validation samples answered by generation. 0: none, None: all.
        system_prompt: System message before each question.
        template_options: Further variables of the chat template.
        image_options: Settings of the image processor that replace those in its files (`max_pixels`, `size`, …).
        fallback_template: Text around a question for models without a chat template.
        max_bad_share: The run stops when more than this share of a split's samples could not be used in an epoch.
        group_by_length: Whether training rows of like length share an optimizer step. Text only: it reads every sample
            once more at the start of an epoch, and takes characters for tokens.
        pack: Whether the rows of a micro-batch with answers are put behind each other into one row, without padding;
            loss and gradients stay the same. Text only, and for attention that keeps such rows apart.
        pin_memory: Whether batches are put into page-locked memory (faster copies to a GPU).
        answer_jitter: Law from which the last number of each training answer is drawn again in each epoch; evaluation
            keeps the true answers. None: training keeps them too.
        revision: Revision of the processor on the hub.
        trust_remote_code: Whether code from the processor's repository may run.
    """

    def __init__(
        self,
        processor: str,
        *,
        batch_size: int = 8,
        eval_batch_size: int | None = None,
        num_workers: int = 0,
        seed: int = 0,
        max_length: int | None = None,
        limit: int | None = None,
        generation_limit: int | None = 200,
        system_prompt: str | None = None,
        template_options: dict[str, Any] | None = None,
        image_options: dict[str, Any] | None = None,
        fallback_template: str = "Question: {prompt}\nAnswer:",
        max_bad_share: float = 0.05,
        group_by_length: bool = False,
        pack: bool = False,
        pin_memory: bool = False,
        answer_jitter: AnswerLaw | None = None,
        revision: str | None = None,
        trust_remote_code: bool = False,
    ) -> None:
        super().__init__()
        for name, value, least in (
            ("batch_size", batch_size, 1),
            ("eval_batch_size", eval_batch_size, 1),
            ("num_workers", num_workers, 0),
            ("max_length", max_length, 1),
            ("limit", limit, 1),
            ("generation_limit", generation_limit, 0),
        ):
            if value is not None and value < least:
                raise ValueError(f"{name} must be at least {least}, got {value}.")
        if not 0 <= max_bad_share <= 1:
            raise ValueError(f"max_bad_share must lie between 0 and 1, got {max_bad_share}.")
        self.processor_path = processor
        self.batch_size = batch_size
        self.eval_batch_size = eval_batch_size or batch_size
        self.num_workers = num_workers
        self.seed = seed
        self.max_length = max_length
        self.limit = limit
        self.generation_limit = generation_limit
        self.system_prompt = system_prompt
        self.template_options = template_options
        self.image_options = image_options
        self.fallback_template = fallback_template
        self.max_bad_share = max_bad_share
        self.group_by_length = group_by_length
        self.pack = pack
        self.pin_memory = pin_memory
        self.answer_jitter = answer_jitter
        self.revision = revision
        self.trust_remote_code = trust_remote_code
        self._collator: Collator | None = None
        self._sources: dict[str, Source] = {}
        self._named: set[str] = set()
        self._train_loader: NumericLoader | None = None
        self._position: dict[str, Any] = {}
        self._asking: dict[str, Any] | None = None

    @abstractmethod
    def source(self, split: Split) -> Source:
        """Returns the samples of `split`; called once per split and process.

        Raises:
            ValueError: The settings or files do not give such a split.
        """

    def setup(self, stage: str) -> None:
        """Looks at the trainer's settings and at a sample of each split, before the model's weights load.

        Raises:
            ValueError: The loader cannot follow a setting, files or settings of the data are wrong, or no training
                sample fits into `max_length`.
        """
        splits: list[Split] = [{"fit": "train", "validate": "val"}.get(stage, "test")]  # type: ignore[list-item]
        if stage == "fit":
            if self.trainer is not None:
                check_trainer(self.trainer)
            if self.trainer is None or self.trainer.limit_val_batches:
                splits.append("val")
        with isolate_rng(include_cuda=False):  # what loads and trains afterwards draws as if nobody had looked
            for split in splits:
                look_at_first_samples(self, split)

    @property
    def collator(self) -> Collator:
        """The collator, its processor loaded at first use."""
        if self._collator is None:
            processor = load_processor(
                self.processor_path,
                revision=self.revision,
                trust_remote_code=self.trust_remote_code,
                options=self.image_options,
            )
            self._collator = Collator(
                processor,
                max_length=self.max_length,
                system_prompt=self.system_prompt,
                template_options=self.template_options,
                fallback_template=self.fallback_template,
                pack=self.pack,
            )
        return self._collator

    def asking(self) -> dict[str, Any]:
        """Tells, as plain data, how questions are put to the model; a checkpoint keeps it for exported folders.

        Returns:
            `prompts` (a question of each task), `stop_ids` (tokens that end an answer), and the settings of the same
            names.
        """
        if self._asking is None:
            split: Split = "test" if "train" not in self._sources and "test" in self._sources else "train"
            with isolate_rng(include_cuda=False):
                prompts = questions_of_tasks(self, split)
            self._asking = {
                "prompts": prompts,
                "stop_ids": self.collator.stop_ids,
                "image_options": self.image_options,
                "system_prompt": self.system_prompt,
                "template_options": self.template_options,
                "fallback_template": self.fallback_template,
            }
        return self._asking

    def example(self, split: Split, key: SampleKey) -> NumericExample:
        """Reads or draws one sample again, its pictures included; `Batch.keys` tells the keys."""
        return self._source(split).example(key)

    def size(self, split: Split) -> int:
        """Returns the number of samples of `split` in use."""
        whole = len(self._source(split))
        return whole if self.limit is None else min(whole, self.limit)

    def train_dataloader(self) -> NumericLoader:
        """Returns the training loader, which looks one accumulation window ahead."""
        window = self.trainer.accumulate_grad_batches if self.trainer is not None else 1
        self._train_loader = self._loader("train", window=window)
        if self._position:
            self._train_loader.load_state_dict(self._position)
            self._position = {}
        return self._train_loader

    def state_dict(self) -> dict[str, Any]:
        """Returns the training loader's position.

        Lightning keeps it too, but does not give it back where an epoch is complete, nor where a learning-rate schedule
        had asked for the length of the loader first.
        """
        return {} if self._train_loader is None else self._train_loader.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes to a saved position: now, or when there is a training loader."""
        if self._train_loader is None:
            self._position = dict(state_dict)
        else:
            self._train_loader.load_state_dict(state_dict)

    def val_dataloader(self) -> list[NumericLoader]:
        """Returns the loader for teacher forcing and, unless `generation_limit` is 0, the one for generation."""
        loaders = [self._loader("val")]
        if self.generation_limit != 0:
            loaders.append(self._loader("val", generation=True, limit=self.generation_limit))
        return loaders

    def test_dataloader(self) -> NumericLoader:
        """Returns the loader of all test prompts."""
        return self._loader("test", generation=True)

    def predict_dataloader(self) -> NumericLoader:
        """Returns the loader of all test prompts."""
        return self._loader("test", generation=True)

    def _source(self, split: Split) -> Source:
        if split not in self._sources:
            source = self.source(split)
            if split == "train" and self.answer_jitter is not None:
                source = JitteredSource(source, self.answer_jitter, self.seed)
            self._sources[split] = source
            if len(self._sources[split]) == 0:
                raise ValueError(f"{type(self).__name__}: the {split} split has no sample. Look at its settings.")
        return self._sources[split]

    def _loader(
        self, split: Split, *, window: int = 0, generation: bool = False, limit: int | None = None
    ) -> NumericLoader:
        training = split == "train"
        size = self.size(split) if limit is None else min(self.size(split), limit)
        rank, world_size = (self.trainer.global_rank, self.trainer.world_size) if self.trainer is not None else (0, 1)
        sampler = MicroBatchSampler(
            size,
            self.batch_size if training else self.eval_batch_size,
            rank=rank,
            world_size=world_size,
            seed=self.seed,
            shuffle=training,
            lengths=partial(characters_of_rows, self) if training and self.group_by_length else None,
            window=max(window, 1),
        )
        builder = BatchBuilder(self._source(split), size, self.collator, generation=generation, replace_bad=training)
        return NumericLoader(
            builder,
            sampler,
            window=window,
            epoch_end=micro_batches(self.trainer, len(sampler)) if training else None,
            num_workers=self.num_workers,
            pin_memory=self.pin_memory,
            max_bad_share=self.max_bad_share,
            named=self._named,
        )
