"""The card (README.md) of an exported folder: how it is asked, what it was trained on and how well it did.

Unusual here: the call on the card is complete. It puts the question in the words of the training data and needs nothing
but transformers (and peft for an adapter), because a model that was trained on "Answer with a single word or number."
answers badly without that sentence.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import yaml

from smmd_lightning.backbones.locate import locate

PACKAGES = ("smmd_lightning", "torch", "transformers", "peft", "lightning")

CALL = """\
from transformers import {imports}
{more_imports}
folder = "."
processor = {processor}.from_pretrained(folder)
{load}
question = {question!r}
chat = [{chat}]
inputs = processor.apply_chat_template(
    chat, add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt"{template_options}
)
tokens = model.generate(**inputs{generation})
print(processor.decode(tokens[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True).strip())
"""

CALL_WITHOUT_TEMPLATE = """\
from transformers import {imports}
{more_imports}
folder = "."
processor = {processor}.from_pretrained(folder)
{load}
question = {question!r}
text = {bos!r} + {template!r}.replace("{{prompt}}", question)
inputs = processor(text, return_tensors="pt", add_special_tokens=False)
tokens = model.generate(**inputs{generation})
print(processor.decode(tokens[0, inputs["input_ids"].shape[1] :], skip_special_tokens=True).strip())
"""


def model_card(
    *,
    path: str,
    sees: bool,
    bos: str | None,
    has_template: bool,
    adapter: bool,
    asking: Mapping[str, Any] | None,
    settings: Mapping[str, Any],
    run: str | Path | None,
) -> str:
    """Returns the text of the card.

    Args:
        path: The model that was trained, as the settings name it.
        sees: Whether it takes pictures.
        bos: The tokenizer's begin token, for models without a chat template.
        has_template: Whether it has a chat template.
        adapter: Whether the folder holds an adapter alone.
        asking: What the data module said about its questions (`NumericDataModule.asking`). None: not known.
        settings: The module's settings, from the checkpoint.
        run: The run's folder, for its metrics and data; None or a folder without them: left out.
    """
    base = path if _is_hub_name(path) else None
    lines = ["---", "library_name: peft" if adapter else "library_name: transformers"]
    lines += [f"base_model: {base}"] if base else []
    lines += [
        "tags: [smmd-lightning, numbers]",
        "---",
        "",
        f"# {Path(path).name}, fine-tuned to answer with numbers",
        "",
    ]
    asking = dict(asking or {})
    lines += ["## How to ask it", ""]
    prompts: dict[str, str] = asking.get("prompts") or {}
    if not prompts:
        lines += [
            "The checkpoint does not say how questions were put in training; put them as your training data did.",
            "",
        ]
    else:
        lines += ["Questions were put like this in training; keep to the wording:", ""]
        lines += [f"- {task}: `{json.dumps(prompt, ensure_ascii=False)}`" for task, prompt in prompts.items()]
        lines += [""]
    question = next(iter(prompts.values()), "…")
    lines += ["```python", _call(path, sees, bos, has_template, adapter, asking, question).rstrip(), "```", ""]
    if sees:
        options = asking.get("image_options")
        told = f"`{json.dumps(options)}`, which the saved processor has" if options else "those of the base model"
        lines += [f"Image options: {told}. Pictures are RGB and upright.", ""]
    lines += ["## Training", ""]
    lines += [f"- model: `{path}`"] if base or path.startswith("tiny:") else [f"- model: `{Path(path).name}`"]
    lines += [f"- loss: cross-entropy + {_loss(settings)}"]
    config = _read(run, "config.yaml")
    if config.get("data"):
        lines += [
            "- data:",
            "",
            "```yaml",
            yaml.safe_dump(_without_paths(config["data"]), sort_keys=False).rstrip(),
            "```",
        ]
    lines += ["- versions: " + ", ".join(f"{name} {found}" for name in PACKAGES if (found := _version(name)))]
    if metrics := _read(run, "metrics.json"):
        lines += ["", "## Metrics", "", "| metric | value |", "|---|---|"]
        lines += [f"| {name} | {value:.4g} |" for name, value in metrics.items() if isinstance(value, (int, float))]
    return "\n".join(lines) + "\n"


def _call(
    path: str, sees: bool, bos: str | None, has_template: bool, adapter: bool, asking: Mapping[str, Any], question: str
) -> str:
    auto = "AutoModelForImageTextToText" if sees else "AutoModelForCausalLM"
    processor = "AutoProcessor" if sees else "AutoTokenizer"
    load, more, generation = f"model = {auto}.from_pretrained(folder)", [], ""
    imports = [auto, processor]
    if adapter:
        own = locate(path) != path  # a name that only this package knows
        more += ["from smmd_lightning.backbones.locate import locate"] if own else []
        where = f"locate({path!r})" if own else repr(path)
        load = f"base = {auto}.from_pretrained({where})\nmodel = PeftModel.from_pretrained(base, folder)"
        more.append("from peft import PeftModel")
        imports.append("GenerationConfig")
        generation = ", generation_config=GenerationConfig.from_pretrained(folder)"
    content = "question"
    if sees:
        more.append("from PIL import Image, ImageOps")
        load += '\npicture = ImageOps.exif_transpose(Image.open("picture.png")).convert("RGB")'
        content = '[{"type": "image", "image": picture}, {"type": "text", "text": question}]'
    chat = f'{{"role": "user", "content": {content}}}'
    if system := asking.get("system_prompt"):
        said = repr([{"type": "text", "text": system}] if sees else system)
        chat = f'{{"role": "system", "content": {said}}}, {chat}'
    options = "".join(f", {name}={value!r}" for name, value in (asking.get("template_options") or {}).items())
    return (CALL if has_template else CALL_WITHOUT_TEMPLATE).format(
        imports=", ".join(sorted(imports)),
        more_imports="".join(f"{line}\n" for line in sorted(more)),
        processor=processor,
        load=load,
        question=question,
        chat=chat,
        template_options=options,
        generation=generation,
        bos=bos or "",
        template=asking.get("fallback_template", "Question: {prompt}\nAnswer:"),
    )


def _loss(settings: Mapping[str, Any]) -> str:
    loss = settings.get("numeric_loss")
    if not loss:
        return "nothing"
    name = str(loss.get("class_path", "")).rpartition(".")[2] if isinstance(loss, Mapping) else type(loss).__name__
    arguments = loss.get("init_args") if isinstance(loss, Mapping) else None
    return f"{settings.get('loss_weight', 1.0)} × `{name}`" + (f" with `{json.dumps(arguments)}`" if arguments else "")


def _read(run: str | Path | None, name: str) -> dict[str, Any]:
    if run is None or not (Path(run) / name).is_file():
        return {}
    found = yaml.safe_load((Path(run) / name).read_text(encoding="utf-8"))  # JSON is YAML too
    return found if isinstance(found, dict) else {}


def _without_paths(value: Any) -> Any:
    """Drops the folders of absolute paths, which say more about a machine than about the data."""
    if isinstance(value, dict):
        return {key: _without_paths(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_paths(item) for item in value]
    return Path(value).name if isinstance(value, str) and Path(value).is_absolute() else value


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _is_hub_name(path: str) -> bool:
    return path.count("/") == 1 and not path.startswith((".", "/", "~")) and not Path(path).exists()
