"""The peers of the training benchmark, on our rows in our order, and what all of its variants share."""

from __future__ import annotations

import tempfile
import time
from typing import Any

from benchmarks.harness import Case

LEARNING_RATE = 2e-5


class Stopwatch:
    """Wall and processor time from the end of the first step to the end of the last, and the losses."""

    def __init__(self) -> None:
        self.ends: list[tuple[float, float]] = []
        self.losses: list[float] = []

    def step(self) -> None:
        """Called at the end of an optimizer step."""
        import torch

        if torch.cuda.is_available():
            torch.cuda.synchronize()
        self.ends.append((time.perf_counter(), time.process_time()))

    def result(self, batch: int) -> dict[str, Any]:
        """Seconds a sample, and the first loss."""
        samples = batch * (len(self.ends) - 1)
        wall, processor = (last - first for first, last in zip(self.ends[0], self.ends[-1], strict=True))
        return {"seconds": wall / samples, "cpu": processor / samples, "loss": self.losses[0]}


def data(case: Case) -> Any:
    """The data module of a case."""
    from datamodules import ClockDataModule, DrawnClocks, DrawnWordProblems, MathFiles, TextMathDataModule

    common: dict[str, Any] = {"batch_size": case["batch"], "limit": case["batch"] * case["steps"]}
    common["pack"] = case.get("pack", False)
    if case["method"] == "clocks":
        return ClockDataModule(case["model"], DrawnClocks(style="plain", image_size=64), **common)
    files = MathFiles(f"{case['gsm8k']}/train.jsonl", fractions=(0.9, 0.1, 0.0)) if case["gsm8k"] else None
    return TextMathDataModule(case["model"], files or DrawnWordProblems(), **common)


def trl(case: Case) -> dict[str, Any]:
    """TRL's SFTTrainer with its own loss."""
    from trl import SFTConfig, SFTTrainer

    settings = {"dataset_kwargs": {"skip_prepare_dataset": True}, "max_length": None}
    return peer(case, SFTTrainer, SFTConfig, settings)


def full_logits(case: Case) -> dict[str, Any]:
    """Transformers' Trainer with the model's own loss on full logits."""
    from transformers import Trainer, TrainingArguments

    return peer(case, Trainer, TrainingArguments, {})


def peer(case: Case, trainer_class: Any, config_class: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Trains with a peer's trainer on our rows in our order."""
    import torch
    from datasets import Dataset
    from peft import LoraConfig, get_peft_model
    from torch.utils.data import SequentialSampler
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText, TrainerCallback

    from smmd_lightning.backbones.locate import locate

    torch.manual_seed(0)
    watch = Stopwatch()

    class Watching(TrainerCallback):
        def on_step_end(self, *_: Any, **__: Any) -> None:
            watch.step()

    class InOrder(trainer_class):
        def _get_train_sampler(self, *_: Any) -> Any:
            return SequentialSampler(self.train_dataset)

        def training_step(self, *given: Any, **named: Any) -> Any:
            loss = super().training_step(*given, **named)
            if not watch.losses:  # what the trainer logs is rounded
                watch.losses.append(loss.item())
            return loss

    module = data(case)
    keys = [key for batch in module.train_dataloader()._sampler for key in batch]
    kind = AutoModelForImageTextToText if case["method"] == "clocks" else AutoModelForCausalLM
    folder, dtype = locate(case["model"]), getattr(torch, case["dtype"])
    if case.get("from_scratch"):
        model = kind.from_config(AutoConfig.from_pretrained(folder), dtype=dtype)
    else:
        model = kind.from_pretrained(folder, dtype=dtype)
    if case["method"] == "lora":
        linear = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
        model = get_peft_model(model, LoraConfig(r=16, lora_alpha=32, target_modules=linear, task_type="CAUSAL_LM"))
    if case["method"] == "clocks":
        # Drawn while training, through our collator, for both: what remains is trainer, model and loss.
        rows = Dataset.from_dict({"place": list(range(len(keys))), "images": [[]] * len(keys)})

        def collate(found: list[dict[str, Any]]) -> dict[str, Any]:
            batch = module.collator([module.example("train", keys[row["place"]]) for row in found])
            return {**batch.inputs, "labels": batch.labels}

        settings = {key: value for key, value in settings.items() if key != "dataset_kwargs"}
    else:
        made = [module.collator([module.example("train", key)]) for key in keys]
        ids = [batch.inputs["input_ids"][0].tolist() for batch in made]
        rows = Dataset.from_dict({"input_ids": ids, "labels": [batch.labels[0].tolist() for batch in made]})
        collate = padding(module.collator.tokenizer.pad_token_id)
    with tempfile.TemporaryDirectory() as out:
        arguments = config_class(
            output_dir=out,
            max_steps=case["steps"],
            per_device_train_batch_size=case["batch"],
            learning_rate=LEARNING_RATE,
            lr_scheduler_type="constant",
            weight_decay=0.0,
            max_grad_norm=1.0,
            optim="adamw_torch_fused",
            bf16=False,
            gradient_checkpointing=False,
            logging_steps=1,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=case.get("accelerator", "cpu") == "cpu",
            remove_unused_columns=False,
            **settings,
        )
        trainer = InOrder(
            model=model,
            args=arguments,
            train_dataset=rows,
            data_collator=collate,
            processing_class=module.collator.processor,
            callbacks=[Watching()],
        )
        trainer.train()
    return watch.result(case["batch"])


def padding(pad: int) -> Any:
    """A collator that pads on the right."""
    import torch

    def collate(rows: list[dict[str, Any]]) -> dict[str, Any]:
        longest = max(len(row["input_ids"]) for row in rows)

        def padded(name: str, filler: int) -> Any:
            return torch.tensor([row[name] + [filler] * (longest - len(row[name])) for row in rows])

        ids, labels = padded("input_ids", pad), padded("labels", -100)
        lengths = torch.tensor([len(row["input_ids"]) for row in rows])
        return {
            "input_ids": ids,
            "labels": labels,
            "attention_mask": (torch.arange(longest)[None] < lengths[:, None]).long(),
        }

    return collate
