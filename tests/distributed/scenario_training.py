"""Training and evaluation on two processes, against plain torch in one."""

import json
from dataclasses import replace
from pathlib import Path

import torch
import torch.distributed as dist
from sums import Gradients, Mixed, Sums, SumsData, assert_near, module, scenario, trainer, whole

from smmd_lightning.backbones import LoRA
from smmd_lightning.balance import WeightBalance
from smmd_lightning.callbacks import ResultsWriter
from smmd_lightning.checkpoints import sharded
from smmd_lightning.strategies import FSDP1Strategy, FSDP2Strategy

STRATEGIES = {"ddp": lambda: "ddp", "fsdp2": FSDP2Strategy, "fsdp1": FSDP1Strategy}
LOSSES = {"ce": (False, 0.0), "smmd": (True, 1e4), "sum": (True, 1.0)}


def of_one_batch(made, data):
    """The reference: all samples in one micro-batch, no engine; gradients of what is trained."""
    made.configure_model()
    batch = next(iter(data.train_dataloader()))
    made.objective(made.backbone, batch.inputs, batch.labels).loss.backward()
    return {name: parameter.grad for name, parameter in made.named_parameters() if parameter.grad is not None}


def of_two_processes(made, data, strategy, **settings):
    seen = Gradients()
    trainer(strategy=strategy, devices=2, callbacks=[seen], **settings).fit(made, data)
    return seen.steps[0]


def norm(gradients):
    return torch.stack([value.double().norm() for value in gradients.values()]).norm()


def norm_of_pieces(gradients):
    square = norm(gradients).square()
    dist.all_reduce(square)
    return square.sqrt()


@scenario
def gradients_of_a_step_do_not_depend_on_how_it_is_cut(folder):
    for loss, weight in LOSSES.values():
        expected = of_one_batch(module(loss, weight), SumsData(batch_size=16))
        for name, strategy in STRATEGIES.items():
            for batch_size, accumulate in ((8, 1), (2, 4)):
                found = of_two_processes(
                    module(loss, weight),
                    SumsData(batch_size=batch_size),
                    strategy(),
                    accumulate_grad_batches=accumulate,
                    default_root_dir=folder,
                )
                if name == "fsdp1":  # flat pieces of what each process has
                    torch.testing.assert_close(norm_of_pieces(found), norm(expected), rtol=1e-5, atol=0)
                else:
                    assert_near(found, expected)


@scenario
def the_weight_found_by_gradients_does_not_depend_on_how_steps_are_cut(folder):
    auto = {"weight": "auto", "weight_balance": WeightBalance(steps=1)}
    alone, data = module(**auto), SumsData(batch_size=16)
    alone.configure_model()
    batch = next(iter(data.train_dataloader()))
    output = alone.objective(alone.backbone, batch.inputs, batch.labels)
    alone.measured.add(*output.squares.tolist(), output.supervised, output.numeric)
    for name, strategy in STRATEGIES.items():
        for batch_size, accumulate in ((8, 1), (2, 4)):
            made = module(**auto, backbone={"head_chunk": 4})
            settings = {"accumulate_grad_batches": accumulate, "default_root_dir": folder}
            of_two_processes(made, SumsData(batch_size=batch_size), strategy(), **settings)
            torch.testing.assert_close(made.measured.value, alone.measured.value, rtol=1e-4, atol=0, msg=name)
            both = [None, None]
            dist.all_gather_object(both, made.measured.state_dict())
            assert both[0] == both[1], name


@scenario
def gradients_are_clipped_by_their_norm_over_all_processes(folder):
    for strategy in STRATEGIES.values():
        made = module(lr=1.0, optimizer=torch.optim.SGD)
        before = module()
        before.configure_model()
        engine = trainer(strategy=strategy(), devices=2, gradient_clip_val=0.01, default_root_dir=folder)
        engine.fit(made, SumsData(batch_size=8))
        if hasattr(engine.strategy, "sharded_checkpoints"):
            after = sharded.weights(engine.strategy.model, whole=True)
        else:
            after = made.state_dict()
        if dist.get_rank() == 0:
            steps = [after[name].double() - value for name, value in before.state_dict().items()]
            moved = torch.stack([step.norm() for step in steps]).norm()
            torch.testing.assert_close(float(moved), 0.01, rtol=1e-3, atol=0)


@scenario
def frozen_parts_adapters_and_recomputation_train_as_in_one_process(folder):
    """LoRA with gradient checkpointing; a frozen tower; text alone on one process and images on the other."""
    lora = {"adapter": LoRA(rank=2), "gradient_checkpointing": True}
    cases = [
        ({"backbone": lora}, SumsData),
        ({"path": "tiny:llava", "backbone": {"freeze_vision": True, "gradient_checkpointing": True}}, Mixed),
        ({"path": "tiny:qwen2-vl", "backbone": {}}, Mixed),
        ({"path": "tiny:llava", "backbone": lora}, Mixed),
    ]
    for settings, data in cases:
        path = settings.get("path", "tiny:llama")
        expected = of_one_batch(module(**settings), data(path, batch_size=16))
        for name, strategy in STRATEGIES.items():
            made = module(**settings)
            found = of_two_processes(made, data(path, batch_size=8), strategy(), default_root_dir=folder)
            if name == "fsdp1":
                torch.testing.assert_close(norm_of_pieces(found), norm(expected), rtol=1e-4, atol=0)
            else:
                assert_near(found, expected, 3e-5)
            for parameter in made.parameters():
                assert parameter.requires_grad or parameter.grad is None


class Words(Sums):
    """The first sample has no number in its answer, so neither has the first process of two."""

    def example(self, key):
        made = super().example(key)
        return replace(made, answer="Yes.") if key.index == 0 else made


class WordsData(SumsData):
    def source(self, split):
        return Words(self.sizes[split])

    def _loader(self, split, **settings):
        loader = super()._loader(split, **settings)
        loader._sampler.shuffle = False
        return loader


@scenario
def a_process_without_numbers_or_without_any_label_trains_along(folder):
    """Of one sample, the second process gets a row that only fills up; of two, the first gets words alone."""
    for data, size in ((SumsData, 1), (WordsData, 1), (WordsData, 2)):
        expected = of_one_batch(module(), data(train_size=size, batch_size=size))
        for name, strategy in STRATEGIES.items():
            made = module()
            given = data(train_size=size, batch_size=1)
            found = of_two_processes(made, given, strategy(), default_root_dir=folder)
            if name == "fsdp1":
                torch.testing.assert_close(norm_of_pieces(found), norm(expected), rtol=1e-5, atol=0)
            else:
                assert_near(found, expected)
            assert all(bool(torch.isfinite(whole(value)).all()) for value in made.parameters())


@scenario
def half_precision_computes_and_full_precision_adds_up(folder):
    expected = of_one_batch(module(), SumsData(batch_size=16))
    made = module()
    found = of_two_processes(
        made, SumsData(batch_size=8), FSDP2Strategy(compute_dtype="bfloat16"), default_root_dir=folder
    )
    assert_near(found, expected, 0.1)
    assert all(value.dtype == torch.float32 for value in found.values())
    assert all(buffer.dtype != torch.bfloat16 for buffer in made.buffers())
    flat = of_two_processes(
        module(), SumsData(batch_size=8), FSDP1Strategy(), precision="bf16-mixed", default_root_dir=folder
    )
    torch.testing.assert_close(norm_of_pieces(flat), norm(expected), rtol=0.02, atol=0)
    assert all(value.dtype == torch.float32 for value in flat.values())
    # Frozen weights in bfloat16, adapters in float32, as `bfloat16` backbones with LoRA have them.
    for strategy in (FSDP2Strategy(compute_dtype="bfloat16"), "ddp"):
        low = module(backbone={"dtype": "bfloat16", "adapter": LoRA(rank=2)})
        options = {"precision": "bf16-mixed"} if strategy == "ddp" else {}
        found = of_two_processes(low, SumsData(batch_size=8), strategy, default_root_dir=folder, **options)
        assert found
        assert all("lora" in name and value.dtype == torch.float32 for name, value in found.items())


@scenario
def sharded_loading_holds_no_second_copy(folder):
    from torch.distributed.fsdp import FSDPModule
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = {"hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4}
    path = Path(folder) / "model"
    if dist.get_rank() == 0:
        model = LlamaForCausalLM(LlamaConfig(vocab_size=65_536, **sizes)).bfloat16()
        model.save_pretrained(path)
        del model
    dist.barrier()
    whole = 4 * 2 * 65_536 * 256  # bytes of both embedding matrices in float32
    made = module(False, path=str(path))
    strategy = FSDP2Strategy()
    # A module without processor: the backbone alone, through the strategy's own way of loading it.
    from smmd_lightning.backbones import LanguageBackbone

    made.backbone = LanguageBackbone(str(path), dtype="float32")
    engine = trainer(strategy=strategy, devices=2, default_root_dir=folder)
    strategy.connect(made)
    made.trainer = engine
    strategy.setup_environment()
    before = own_memory()
    strategy.load_backbone(made.backbone)
    grown = own_memory() - before
    assert grown < 0.75 * whole, (grown / whole, "each process may keep its half")
    assert all(isinstance(block, FSDPModule) for block in made.backbone.blocks)
    assert all(p.dtype == torch.float32 and p.to_local().dtype == torch.float32 for p in made.backbone.parameters())
    plain = LanguageBackbone(str(path), dtype="float32")
    plain.load()
    for name, value in plain.named_buffers():  # rotary tables
        torch.testing.assert_close(dict(made.backbone.named_buffers())[name], value, rtol=0, atol=0)
    for name, value in plain.named_parameters():
        torch.testing.assert_close(dict(made.backbone.named_parameters())[name].full_tensor(), value, rtol=0, atol=0)


def own_memory():
    """Bytes of this process that are backed by no file, so shared with nobody."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("Anonymous:"))


class EarlyStop(SumsData):
    """Process 0 may stop at any token, process 1 at none."""

    def test_dataloader(self):
        return self._stopping(super().test_dataloader())

    def predict_dataloader(self):
        return self.test_dataloader()

    def _stopping(self, loader):
        make = loader._loader.dataset.collator
        end = list(range(make.tokenizer.vocab_size)) if self.trainer.global_rank == 0 else []
        make.__class__ = type("Stopping", (type(make),), {"stop_ids": end})
        return loader


@scenario
def answers_of_unequal_length_on_unequal_shards(folder):
    """5 samples on 2 processes: each is answered and counted once, in order, and no process waits for ever."""
    alone = module(max_new_tokens=12)
    alone.configure_model()
    batch = next(iter(SumsData(eval_batch_size=5).test_dataloader()))
    ids = alone.backbone.generate(batch.inputs, max_new_tokens=12)
    texts = alone.tokenizer.batch_decode(ids, skip_special_tokens=True)
    first = alone.tokenizer.batch_decode(ids[:, :1], skip_special_tokens=True)
    for name, strategy in STRATEGIES.items():
        place = Path(folder) / name
        settings = {"devices": 2, "default_root_dir": place, "limit_val_batches": 1.0}
        made = module(max_new_tokens=12)
        engine = trainer(strategy=strategy(), callbacks=[ResultsWriter()], **settings)
        engine.test(made, EarlyStop(eval_batch_size=2), verbose=False)
        dist.barrier()  # process 0 may still be writing its report
        rows = [json.loads(line) for line in (place / "predictions.jsonl").read_text().splitlines()]
        assert [row["id"] for row in rows] == [f"sum-0-{index}" for index in range(5)]
        metrics = json.loads((place / "metrics.json").read_text())
        assert metrics["test/samples"] == 5
        # Deal of 2 rows: process 0 has samples 0, 1, 4, of which it says one token; process 1 has 2, 3.
        for index in (2, 3):
            assert rows[index]["raw"] == texts[index].strip(), name
        for index in (0, 1, 4):
            assert rows[index]["raw"] == first[index].strip(), name
        told = ResultsWriter(answers="told.jsonl", report=False)
        trainer(strategy=strategy(), callbacks=[told], **settings).predict(
            module(max_new_tokens=12), EarlyStop(eval_batch_size=2), return_predictions=False
        )
        dist.barrier()
        assert (place / "told.jsonl").read_text() == (place / "predictions.jsonl").read_text()
        made = module(max_new_tokens=12)
        engine = trainer(strategy=strategy(), callbacks=[ResultsWriter()], **settings)
        found = engine.validate(made, SumsData(eval_batch_size=2), verbose=False)
        assert {entry["val/samples"] for entry in found if "val/samples" in entry} == {5.0}
        merged = {key: value for entry in found for key, value in entry.items()}
        expected = alone.objective(alone.backbone, *of_validation())
        torch.testing.assert_close(merged["val/ce"], float(expected.metrics["ce"]), rtol=1e-5, atol=0)


def of_validation():
    batch = next(iter(SumsData(eval_batch_size=5).val_dataloader()[0]))
    return batch.inputs, batch.labels
