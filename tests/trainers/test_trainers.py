"""The trainers of transformers and TRL with our loss: exact over windows, with adapters and with pictures."""

import json

import pytest
import torch
from datasets import Dataset
from launching import finish, ranks, start
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainingArguments, default_data_collator

from smmd_lightning import NumericVocabulary, SMMDLoss
from smmd_lightning.backbones.locate import locate
from smmd_lightning.trainers import SMMDTrainer

PATH = "tiny:qwen2"
TEXTS = ["7 + 5 = 12", "3 + 4 = 7", "no numbers", "81 - 2 = 79", "6 * 7 = 42", "1", "12 12 12", "a 5"]


def model_and_tokenizer(path=PATH):
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_pretrained(locate(path)), AutoTokenizer.from_pretrained(locate(path))


def rows(tokenizer):
    encoded = tokenizer(TEXTS, padding="max_length", max_length=20)
    labels = torch.tensor(encoded["input_ids"]).masked_fill(torch.tensor(encoded["attention_mask"]) == 0, -100)
    return Dataset.from_dict(
        {**{key: encoded[key] for key in ("input_ids", "attention_mask")}, "labels": labels.tolist()}
    )


def arguments(folder, **more):
    plain = {"max_steps": 1, "report_to": [], "save_strategy": "no", "use_cpu": True, "disable_tqdm": True}
    plain |= {"optim": "sgd", "learning_rate": 0.1, "lr_scheduler_type": "constant", "max_grad_norm": 0.0}
    return TrainingArguments(output_dir=str(folder), logging_steps=1, **(plain | more))


def train(folder, batch, accumulation, weight=0.5, wrap=None):
    model, tokenizer = model_and_tokenizer()
    model = wrap(model) if wrap else model
    trainer = SMMDTrainer(
        model=model,
        args=arguments(folder, per_device_train_batch_size=batch, gradient_accumulation_steps=accumulation),
        train_dataset=rows(tokenizer),
        data_collator=default_data_collator,
        processing_class=tokenizer,
        numeric_loss=SMMDLoss(),
        loss_weight=weight,
    )
    trainer._get_train_sampler = lambda *_: torch.utils.data.SequentialSampler(trainer.train_dataset)
    trainer.train()
    weights = {name: p.detach().clone() for name, p in model.named_parameters()}
    return weights, trainer.state.log_history[0]


def reference(weight=0.5):
    """One step of SGD on full logits, all eight rows in one batch."""
    model, tokenizer = model_and_tokenizer()
    batch = default_data_collator(list(rows(tokenizer)))
    labels = batch.pop("labels")
    model.train()
    logits = model(**batch).logits
    ce = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
    numeric = SMMDLoss().bind(NumericVocabulary.from_tokenizer(tokenizer)).from_logits(logits, labels)
    loss = ce + weight * numeric
    loss.backward()
    return {name: (p - 0.1 * p.grad).detach() for name, p in model.named_parameters()}, float(ce), float(numeric)


@pytest.mark.parametrize(("batch", "accumulation"), [(8, 1), (4, 2), (1, 8)])
def test_a_step_is_the_same_however_it_is_cut_up(tmp_path, batch, accumulation):
    expected, ce, numeric = reference()
    weights, logged = train(tmp_path, batch, accumulation)
    assert logged["ce"] == pytest.approx(ce, rel=1e-4)
    assert logged["numeric"] == pytest.approx(numeric, rel=1e-4)
    assert logged["loss"] == pytest.approx(ce + 0.5 * numeric, rel=1e-3)
    for name, weight in expected.items():
        torch.testing.assert_close(weights[name], weight, rtol=1e-4, atol=1e-5)


def test_an_adapter_alone_is_trained(tmp_path):
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False, task_type="CAUSAL_LM")
    start_weights = {}

    def wrap(model):
        wrapped = get_peft_model(model, config)
        start_weights.update({name: p.detach().clone() for name, p in wrapped.named_parameters()})
        return wrapped

    weights, logged = train(tmp_path, 4, 2, wrap=wrap)
    moved = {name for name in weights if not torch.equal(weights[name], start_weights[name])}
    assert moved
    assert all("lora_" in name for name in moved)
    assert logged["numeric"] > 0


def test_evaluation_and_its_metrics_work(tmp_path):
    model, tokenizer = model_and_tokenizer()
    data = rows(tokenizer)
    common = {"model": model, "args": arguments(tmp_path), "processing_class": tokenizer}
    common |= {"eval_dataset": data, "data_collator": default_data_collator}
    plain = SMMDTrainer(**common, numeric_loss=SMMDLoss(), loss_weight=0.5).evaluate()
    seen = []

    def metrics(prediction):
        seen.append(prediction.predictions.shape)
        return {}

    with_logits = SMMDTrainer(**common, numeric_loss=SMMDLoss(), loss_weight=0.5, compute_metrics=metrics).evaluate()
    _, ce, numeric = reference()
    assert plain["eval_loss"] == pytest.approx(ce + 0.5 * numeric, rel=1e-4)
    assert with_logits["eval_loss"] == pytest.approx(plain["eval_loss"], rel=1e-6)
    assert seen == [(8, 20, model.config.vocab_size)]


def test_pictures_train_through_our_collator(tmp_path):
    from transformers import AutoModelForImageTextToText

    from datamodules import ClockDataModule, DrawnClocks
    from smmd_lightning.types import SampleKey

    module = ClockDataModule("tiny:llava", DrawnClocks(style="plain", image_size=32, train_size=4), batch_size=4)
    module.setup("fit")
    model = AutoModelForImageTextToText.from_pretrained(locate("tiny:llava"))

    def collate(found):
        keys = [SampleKey(0, row["place"]) for row in found]
        batch = module.collator([module.example("train", key) for key in keys])
        return {**batch.inputs, "labels": batch.labels}

    trainer = SMMDTrainer(
        model=model,
        args=arguments(tmp_path, remove_unused_columns=False, per_device_train_batch_size=2, max_steps=2),
        train_dataset=Dataset.from_dict({"place": list(range(4))}),
        data_collator=collate,
        processing_class=module.collator.processor,
        numeric_loss=SMMDLoss(),
    )
    trainer.train()
    assert all(log["numeric"] > 0 for log in trainer.state.log_history[:2])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"compute_loss_func": print}, "compute_loss_func needs full logits"),
        ({"head_chunk": 0}, "head_chunk must be at least 1"),
        ({"processing_class": None}, "processing_class"),
    ],
)
def test_settings_that_cannot_work_are_named(tmp_path, settings, message):
    model, tokenizer = model_and_tokenizer()
    common = {"model": model, "args": arguments(tmp_path), "processing_class": tokenizer, "numeric_loss": SMMDLoss()}
    with pytest.raises(ValueError, match=message):
        SMMDTrainer(**(common | settings))


def test_label_smoothing_is_refused(tmp_path):
    model, tokenizer = model_and_tokenizer()
    with pytest.raises(ValueError, match="GaussianSmoothingLoss"):
        SMMDTrainer(model=model, args=arguments(tmp_path, label_smoothing_factor=0.1), processing_class=tokenizer)


def test_trl_trains_with_the_numeric_loss_on_completions_alone(tmp_path):
    trl = pytest.importorskip("trl", reason="TRL is not installed")
    from smmd_lightning.trainers import SMMDSFTTrainer

    model, tokenizer = model_and_tokenizer()
    data = [{"prompt": f"What is {n} + 1? ", "completion": str(n + 1)} for n in range(8)]
    config = trl.SFTConfig(
        output_dir=str(tmp_path), max_steps=2, per_device_train_batch_size=2, gradient_accumulation_steps=2,
        report_to=[], save_strategy="no", use_cpu=True, bf16=False, disable_tqdm=True, logging_steps=1,
    )  # fmt: skip
    trainer = SMMDSFTTrainer(
        model=model,
        args=config,
        train_dataset=Dataset.from_list(data),
        processing_class=tokenizer,
        numeric_loss=SMMDLoss(),
        loss_weight=0.3,
    )
    seen = []
    count = trainer.objective.count
    trainer.objective.count = lambda targets: seen.append(targets[targets != -100].tolist()) or count(targets)
    trainer.train()
    assert [log["numeric"] > 0 for log in trainer.state.log_history[:2]] == [True, True]
    words = {tokenizer.decode(ids).replace(str(tokenizer.eos_token), " ") for ids in seen}
    assert all(set(text.split()) <= {str(n) for n in range(1, 9)} for text in words), words


@pytest.mark.distributed
def test_two_processes_make_the_step_of_one(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "import sys, json, os, torch\n"
        f"sys.path.insert(0, {str(__import__('pathlib').Path(__file__).parent)!r})\n"
        "import test_trainers\n"
        "weights, logged = test_trainers.train(sys.argv[1], 2, 2)\n"
        "sums = {name: weight.double().sum().item() for name, weight in weights.items()}\n"
        "with open(sys.argv[2], 'w') as file:\n"
        "    json.dump({'ce': logged['ce'], 'w': sums}, file)\n"
        "torch.distributed.barrier()\n"
        "torch.distributed.destroy_process_group()\n"
        "os._exit(0)  # a thread of gloo that is still at work would abort a process that ends in the usual way\n"
    )
    started = [
        start(
            [str(script), str(tmp_path), str(tmp_path / f"{rank}.json")], tmp_path / f"{rank}.log", fresh=True, **extra
        )
        for rank, extra in enumerate(ranks(2))
    ]
    codes = finish(started, timeout=240)
    assert codes == [0, 0], "".join((tmp_path / f"{rank}.log").read_text()[-4000:] for rank in range(2))
    expected, ce, _ = reference()
    for rank in range(2):
        found = json.loads((tmp_path / f"{rank}.json").read_text())
        assert found["ce"] == pytest.approx(ce, rel=1e-4)
        for name, weight in expected.items():
            assert found["w"][name] == pytest.approx(weight.double().sum().item(), rel=1e-4, abs=1e-3), name
