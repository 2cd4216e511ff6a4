"""Hugging Face folders and whole checkpoints, made of what training writes."""

import functools

import pytest
import torch
from lightning.pytorch import Trainer

from datamodules import ClockDataModule, DrawnClocks
from smmd_lightning import SMMDLoss, SMMDModule
from smmd_lightning.backbones import LanguageBackbone, LoRA, VisionLanguageBackbone
from smmd_lightning.commands.export import export, export_command


class WithoutImages:
    """A source whose pictures are dropped."""

    def __init__(self, source):
        self.source = source

    def __len__(self):
        return len(self.source)

    def example(self, key):
        return _without_images(self.source.example(key))


def clocks(backbone, **settings):
    """Drawn clocks; for language models, which could not see them, the questions alone."""
    drawn = DrawnClocks(train_size=4, val_size=1, test_size=2, style="plain", image_size=64)
    data = ClockDataModule(backbone.path, drawn, batch_size=2, generation_limit=0, **settings)
    if isinstance(backbone, LanguageBackbone):
        make = data.source

        def source(split):
            return WithoutImages(make(split))

        data.source = source
    return data


def trained(tmp_path, backbone, image_options=None, **settings):
    """A checkpoint of a module that has made two optimizer steps on clocks."""
    torch.manual_seed(0)
    made = SMMDModule(backbone, SMMDLoss(), 0.5, functools.partial(torch.optim.AdamW, lr=1e-2), **settings)
    data = clocks(backbone, image_options=image_options)
    engine = Trainer(
        accelerator="cpu",
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        limit_val_batches=0,
        default_root_dir=tmp_path,
    )
    engine.fit(made, data)
    engine.save_checkpoint(tmp_path / "a.ckpt")
    made.eval()
    batch = next(iter(data.test_dataloader()))
    with torch.no_grad():
        logits = (
            made.backbone.causal(**batch.inputs).logits
            if backbone.adapter is None
            else made.backbone.model(**batch.inputs).logits
        )
    return tmp_path / "a.ckpt", batch, logits


def _without_images(example):
    from dataclasses import replace

    return replace(example, images=())


CASES = {
    "llava": lambda: VisionLanguageBackbone("tiny:llava"),
    "llava_lora": lambda: VisionLanguageBackbone("tiny:llava", adapter=LoRA(rank=2)),
    "qwen2-vl": lambda: VisionLanguageBackbone("tiny:qwen2-vl", freeze_vision=True),
    "llama_lora": lambda: LanguageBackbone("tiny:llama", adapter=LoRA(rank=2)),
    "qwen2": lambda: LanguageBackbone("tiny:qwen2", gradient_checkpointing=True),
    "qwen2_lora_tied_head": lambda: LanguageBackbone(
        "tiny:qwen2", adapter=LoRA(4, target_modules=["lm_head", "v_proj"])
    ),
    "qwen2-vl_lora_tied_head": lambda: VisionLanguageBackbone(
        "tiny:qwen2-vl", adapter=LoRA(4, target_modules=["lm_head", "qkv", "v_proj"], vision=True)
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_exported_folders_load_in_transformers_with_equal_logits(case, tmp_path):
    from transformers import AutoModelForCausalLM, AutoModelForImageTextToText, AutoProcessor, AutoTokenizer

    backbone = CASES[case]()
    checkpoint, batch, logits = trained(tmp_path, backbone, save_trained_only="lora" in case)
    folder = export(checkpoint, tmp_path / "out")
    auto = AutoModelForCausalLM if isinstance(backbone, LanguageBackbone) else AutoModelForImageTextToText
    model, report = auto.from_pretrained(folder, output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    with torch.no_grad():
        torch.testing.assert_close(model.eval()(**batch.inputs).logits, logits, rtol=1e-4, atol=1e-4)
    if case.startswith("qwen2"):
        tied = model.get_output_embeddings().weight is model.get_input_embeddings().weight
        assert tied == ("tied_head" not in case), "a head with an update of its own, or none"
    own = backbone.causal.generation_config
    assert model.generation_config.eos_token_id == own.eos_token_id
    assert model.generation_config.max_new_tokens == 32
    loader = AutoTokenizer if isinstance(backbone, LanguageBackbone) else AutoProcessor
    messages = [{"role": "user", "content": "hello"}]
    if not isinstance(backbone, LanguageBackbone):
        messages = [{"role": "user", "content": [{"type": "text", "text": "hello"}]}]
    read = loader.from_pretrained(folder)
    assert read.chat_template == loader.from_pretrained(backbone.causal.name_or_path).chat_template
    assert "hello" in read.apply_chat_template(messages, tokenize=False)


def randomise(checkpoint):
    """Gives a checkpoint weights whose answers differ from question to question and from picture to picture."""
    state = torch.load(checkpoint, weights_only=True)
    generator = torch.Generator().manual_seed(0)
    for value in state["state_dict"].values():
        if value.ndim > 1:
            value.normal_(std=0.2, generator=generator)
    torch.save(state, checkpoint)


@pytest.mark.parametrize("case", ["llava", "llava_lora", "qwen2-vl", "llama_lora"])
def test_a_plain_pipeline_answers_as_the_backbone_does(case, tmp_path):
    from transformers import pipeline

    checkpoint, _, _ = trained(tmp_path, CASES[case](), save_trained_only="lora" in case)
    randomise(checkpoint)
    made = SMMDModule.load_from_checkpoint(checkpoint, map_location="cpu")
    data = clocks(made.backbone)
    batch = next(iter(data.test_dataloader()))
    ids = made.backbone.generate(batch.inputs, max_new_tokens=8)
    expected = made.tokenizer.batch_decode(ids, skip_special_tokens=True)
    sees = isinstance(made.backbone, VisionLanguageBackbone)
    task, folder = "image-text-to-text" if sees else "text-generation", export(checkpoint, tmp_path / "out")
    pipe = pipeline(task, model=str(folder), device="cpu")
    found = []
    for key in batch.keys:  # a batch's own examples have no pictures any more
        example = data.source("test").example(key)
        pictures = [{"type": "image", "image": image} for image in example.images]
        content = [*pictures, {"type": "text", "text": example.prompt}] if sees else example.prompt
        options = {"generate_kwargs": {"do_sample": False}} if sees else {"do_sample": False}
        chat = [{"role": "user", "content": content}]
        found.append(pipe(chat, max_new_tokens=8, return_full_text=False, **options)[0]["generated_text"])
    assert found == expected
    assert not sees or len(set(found)) == len(found) == 2, "a pipeline that saw no picture could pass"


def run_card(folder, monkeypatch, picture, capsys):
    """Runs the code on a folder's card beside a picture; returns what it prints."""
    picture.save(folder / "picture.png")
    code = (folder / "README.md").read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    monkeypatch.chdir(folder)
    capsys.readouterr()
    exec(compile(code, "README.md", "exec"), {})
    return capsys.readouterr().out.strip()


@pytest.mark.parametrize("adapter", [False, True], ids=["merged", "adapter"])
def test_the_code_on_the_card_answers_as_the_model_did_in_its_run(adapter, tmp_path, monkeypatch, capsys):
    """With the run's question, its image options, its end tokens and its limit of new tokens."""
    options = {"image_mean": [0.9, 0.9, 0.9], "image_std": [0.1, 0.1, 0.1]}
    checkpoint, _, _ = trained(
        tmp_path, CASES["llava_lora"](), image_options=options, max_new_tokens=6, save_trained_only=True
    )
    randomise(checkpoint)
    made = SMMDModule.load_from_checkpoint(checkpoint, map_location="cpu")
    assert made.asking["image_options"] == options
    data = clocks(made.backbone, image_options=options)
    batch = next(iter(data.test_dataloader()))
    ids = made.backbone.generate(batch.inputs, max_new_tokens=6, eos_token_id=batch.stop_ids)
    expected = made.tokenizer.batch_decode(ids, skip_special_tokens=True)
    other = next(iter(clocks(made.backbone).test_dataloader())).inputs
    assert not torch.equal(other["pixel_values"], batch.inputs["pixel_values"])
    folder = export(checkpoint, tmp_path / "out", adapter=adapter)
    examples = [data.example("test", key) for key in batch.keys]
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert examples[0].prompt in card
    for part in ('"image_mean": [0.9, 0.9, 0.9]', "`SMMDLoss`", "transformers", "0.5 ×"):
        assert part in card
    found = [run_card(folder, monkeypatch, example.images[0], capsys) for example in examples]
    assert found == [text.strip() for text in expected]
    assert len(set(found)) == 2, "a call that saw no picture could pass"


def test_the_card_shows_data_and_metrics_of_the_run_and_no_path_of_the_machine(tmp_path):
    run = tmp_path / "run"
    (run / "checkpoints").mkdir(parents=True)
    checkpoint, _, _ = trained(run / "checkpoints", CASES["llama_lora"]())
    (run / "metrics.json").write_text('{"test/exact_match": 0.51234, "test/samples": 100}', encoding="utf-8")
    (run / "config.yaml").write_text(f"data: {{class_path: datamodules.X, init_args: {{train: {run}/a.csv}}}}\n")
    card = (export(checkpoint, tmp_path / "out") / "README.md").read_text(encoding="utf-8")
    assert "| test/exact_match | 0.5123 |" in card
    assert "class_path: datamodules.X" in card
    assert "train: a.csv" in card
    assert str(tmp_path) not in card


def test_an_adapter_goes_onto_the_model_it_was_trained_on(tmp_path):
    from peft import PeftModel
    from transformers import AutoModelForImageTextToText

    backbone = CASES["llava_lora"]()
    checkpoint, batch, logits = trained(tmp_path, backbone)
    folder = export(checkpoint, tmp_path / "out", adapter=True)
    assert not list(folder.glob("model*.safetensors"))
    base = AutoModelForImageTextToText.from_pretrained(backbone.causal.name_or_path)
    model = PeftModel.from_pretrained(base, folder).eval()
    with torch.no_grad():
        torch.testing.assert_close(model(**batch.inputs).logits, logits, rtol=1e-4, atol=1e-4)


def test_written_weights_have_the_type_asked_for(tmp_path):
    from transformers import AutoModelForImageTextToText

    checkpoint, _, _ = trained(tmp_path, CASES["llava"]())
    export_command(["--ckpt", str(checkpoint), "--out", str(tmp_path / "out"), "--dtype", "bfloat16"])
    model = AutoModelForImageTextToText.from_pretrained(tmp_path / "out", dtype="auto")
    assert model.dtype == torch.bfloat16


def test_what_cannot_be_exported_is_refused(tmp_path):
    checkpoint, _, _ = trained(tmp_path, CASES["llava"]())
    with pytest.raises(ValueError, match="holds no LoRA adapter; leave --adapter out"):
        export(checkpoint, tmp_path / "out", adapter=True)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a.txt").touch()
    with pytest.raises(ValueError, match=r"full is not empty. Choose another --out"):
        export(checkpoint, tmp_path / "full")
    with pytest.raises(ValueError, match=r"no checkpoint at .*none.ckpt"):
        export(tmp_path / "none.ckpt", tmp_path / "out")
