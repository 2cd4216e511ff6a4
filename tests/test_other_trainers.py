"""TRL's trainer with our loss; the other loops of docs/trainers.md run with the documents."""

import pytest
import torch

from smmd_lightning import NumericVocabulary, SMMDLoss
from smmd_lightning.backbones.locate import locate


def test_trl_trains_with_the_numeric_loss(tmp_path):
    trl = pytest.importorskip("trl", reason="TRL is not installed")
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer

    path = locate("tiny:qwen2")
    model, tokenizer = AutoModelForCausalLM.from_pretrained(path), AutoTokenizer.from_pretrained(path)
    numeric_loss = SMMDLoss().bind(NumericVocabulary.from_tokenizer(tokenizer))
    seen = []

    def compute_loss(outputs, labels, num_items_in_batch=None):
        targets = labels[:, 1:]
        ce = torch.nn.functional.cross_entropy(outputs["logits"][:, :-1].flatten(0, 1), targets.flatten())
        numeric = numeric_loss.from_logits(outputs["logits"], labels)
        seen.append((float(ce.detach()), float(numeric.detach())))
        return ce + 0.3 * numeric

    rows = [{"prompt": f"What is {n} + 1? ", "completion": str(n + 1)} for n in range(8)]
    arguments = trl.SFTConfig(
        output_dir=str(tmp_path),
        max_steps=2,
        per_device_train_batch_size=4,
        report_to=[],
        save_strategy="no",
        use_cpu=True,
        bf16=False,
        disable_tqdm=True,
    )
    trainer = trl.SFTTrainer(
        model=model,
        args=arguments,
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer,
        compute_loss_func=compute_loss,
    )
    before = model.model.layers[0].self_attn.q_proj.weight.detach().clone()
    trainer.train()
    assert len(seen) == 2
    assert all(numeric > 0 for _, numeric in seen)
    assert not torch.equal(before, model.model.layers[0].self_attn.q_proj.weight)
