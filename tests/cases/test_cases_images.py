"""Images and batches, as whole runs; the pieces have their tests beside the code they test."""

import functools
import io
import json
import logging

import pytest
import torch
from PIL import Image
from tiny_runs import trainer

from datamodules import ClockDataModule, ClockFiles
from datamodules.pipeline.collate import Collator, TooLong
from smmd_lightning import SMMDModule
from smmd_lightning.backbones import VisionLanguageBackbone
from smmd_lightning.backbones.processors import load_processor
from smmd_lightning.types import NumericExample


def test_image_tokens_are_never_cut_at_a_limit_they_exceed():
    """728 image tokens do not fit into 512, whatever the text."""
    processor = load_processor("tiny:qwen2-vl", options={"max_pixels": 10**7})
    side = processor.image_processor.patch_size * processor.image_processor.merge_size
    picture = Image.new("RGB", (28 * side, 26 * side))
    example = NumericExample("big", "What time is it?", "03:05", (picture,))
    with pytest.raises(TooLong) as raised:
        Collator(processor, max_length=512)([example])
    (reason,) = raised.value.reasons.values()
    assert reason.startswith("sample big has 7")
    assert reason.endswith("with 1 image(s), the limit is max_length=512")
    batch = Collator(processor, max_length=1024)([example])
    assert int((batch.inputs["input_ids"] == processor.image_token_id).sum()) == 728


def photo():
    raw = io.BytesIO()
    Image.effect_noise((64, 64), 90).convert("RGB").save(raw, "JPEG")
    return raw.getvalue()


def clock_files(folder, bad):
    """Twelve clocks, some pictures replaced; returns the label file."""
    (folder / "data").mkdir()
    rows = []
    for number in range(12):
        content = bad.get(number, photo())
        if content is not None:
            (folder / "data" / f"{number}.jpg").write_bytes(content)
        rows.append({"image": f"{number}.jpg", "hour": number, "minute": 5 * number})
    file = folder / "data" / "labels.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(file)


BROKEN = {2: photo()[:300], 4: b"", 6: b"this is text\n", 8: None}


@pytest.mark.parametrize("workers", [0, 2])
def test_a_run_goes_on_over_broken_pictures_and_names_each_once(workers, tmp_path, caplog):
    file = clock_files(tmp_path, BROKEN)
    files = ClockFiles(file, val=file, test=file, cache_dir=str(tmp_path / "cache"))
    data = ClockDataModule(
        "tiny:qwen2-vl", files, batch_size=3, generation_limit=0, max_bad_share=0.5, num_workers=workers
    )
    backbone, optimizer = VisionLanguageBackbone("tiny:qwen2-vl"), functools.partial(torch.optim.SGD, lr=0.01)
    made = SMMDModule(backbone, None, 0.0, optimizer=optimizer)
    run = trainer(tmp_path, max_epochs=2, limit_val_batches=0)
    with caplog.at_level(logging.WARNING):
        run.fit(made, data)
    assert run.global_step == 8  # as many as without broken pictures: processes stay in step
    named = [record.getMessage() for record in caplog.records if "Sample skipped" in record.getMessage()]
    assert len(named) == len(BROKEN)
    for number in BROKEN:
        assert sum(f"row {number + 1}, column 'image' ({number}.jpg)" in line for line in named) == 1


def test_too_many_broken_pictures_end_the_run_with_a_list(tmp_path):
    file = clock_files(tmp_path, BROKEN)
    files = ClockFiles(file, val=file, test=file, cache_dir=str(tmp_path / "cache"))
    data = ClockDataModule("tiny:qwen2-vl", files, batch_size=3, generation_limit=0, max_bad_share=0.05)
    made = SMMDModule(VisionLanguageBackbone("tiny:qwen2-vl"), None, 0.0)
    with pytest.raises(RuntimeError, match=r"(?s)could not be used.*max_bad_share=0\.05.*\.jpg.*Mend the data"):
        trainer(tmp_path, limit_val_batches=0).fit(made, data)
