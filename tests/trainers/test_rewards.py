"""Rewards: bounded, ordered by error, and for CRPS with the gradient of the score itself."""

import itertools
import math

import pytest
import torch
from datasets import Dataset

from datamodules import DrawnArithmetic, NearMissPairs
from smmd_lightning.backbones.locate import locate
from smmd_lightning.trainers import AnswerReward, CRPSReward, FormatReward


def test_nearer_answers_earn_more_and_none_earns_nothing():
    for shape in ("linear", "exponential"):
        earned = AnswerReward("clock", shape, scale=60)(["3:05", "3:06", "3:30", "I see a cat"], answer=["03:05"] * 4)
        assert earned[0] == 1.0
        assert earned == sorted(earned, reverse=True)
        assert earned[3] == 0.0
    assert AnswerReward("clock", "exact")(["3:05", "3:06"], answer=["3:05", "3:05"]) == [1.0, 0.0]
    relative = AnswerReward("math", scale=0.5, relative=True)
    assert relative(["110", "60", "-9"], answer=["100", "100", "0"]) == pytest.approx([0.8, 0.2, 0.0])


def test_instruments_take_their_facts_from_columns():
    reward = AnswerReward("instrument", scale=10)
    columns = {"value": ["4"] * 2, "tick": ["1"] * 2, "scale": [["0", "10"]] * 2, "unit": ["bar"] * 2}
    assert reward(["4.5 bar", "4 bar"], answer=["4 bar"] * 2, **columns, trainer_state=object()) == pytest.approx(
        [0.5, 1]
    )


def test_conversations_count_by_their_last_message():
    talk = [{"role": "assistant", "content": "hm"}, {"role": "assistant", "content": "7"}]
    assert AnswerReward("math")([talk], answer=["7"]) == [1.0]
    assert FormatReward("math")([talk, [], "7 apples"]) == [1.0, 0.0, 0.0]


def test_the_expected_gradient_of_the_crps_reward_is_that_of_the_score():
    values, truth, size = torch.tensor([0.0, 1.0, 3.0, 7.0], dtype=torch.float64), 3.0, 3
    logits = torch.tensor([0.3, -0.2, 0.5, 0.1], dtype=torch.float64, requires_grad=True)
    p = logits.softmax(0)
    apart = (values[:, None] - values).abs()
    score = (p * (values - truth).abs()).sum() - 0.5 * p @ apart @ p
    (wanted,) = torch.autograd.grad(-score, logits)
    log_p, chances = logits.log_softmax(0), p.detach()

    reward, surrogate = CRPSReward(missing=100.0), torch.zeros((), dtype=torch.float64)
    for group in itertools.product(range(4), repeat=size):
        texts = [str(values[place].item()) for place in group]
        earned = reward(["q"] * size, texts, answer=[str(truth)] * size)
        chance = chances[list(group)].prod()
        surrogate = surrogate + chance * sum(r * log_p[place] for r, place in zip(earned, group, strict=True)) / size
    (found,) = torch.autograd.grad(surrogate, logits)
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-12)


def test_groups_are_told_apart_and_missing_numbers_cost_the_stated_distance():
    reward = CRPSReward(missing=5.0)
    earned = reward(["a", "a", "b", "b"], ["1", "none", "9", "11"], answer=["1", "1", "10", "10"])
    assert earned == [0.0, -5.0, 1.0, 1.0]
    assert CRPSReward(period=360)(["a"], ["359"], answer=["1"]) == [-2.0]
    with pytest.raises(ValueError, match="must be a number"):
        reward(["a"], ["1"], answer=["yes"])


@pytest.mark.parametrize("make", [lambda: AnswerReward("math", scale=0), lambda: CRPSReward(missing=math.inf)])
def test_settings_out_of_range_are_named(make):
    with pytest.raises(ValueError, match="must be above 0"):
        make()


def tiny(path="tiny:qwen2"):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.manual_seed(0)
    return AutoModelForCausalLM.from_pretrained(locate(path)), AutoTokenizer.from_pretrained(locate(path))


def test_dpo_on_near_misses_widens_the_margin(tmp_path):
    trl = pytest.importorskip("trl", reason="TRL is not installed")
    model, tokenizer = tiny()
    pairs = NearMissPairs(DrawnArithmetic(digits=(1, 1), train_size=32).open("train", seed=0)).rows(32)
    columns = ("prompt", "chosen", "rejected")
    data = Dataset.from_list([{name: row[name] for name in columns} for row in pairs])
    config = trl.DPOConfig(
        output_dir=str(tmp_path), max_steps=24, per_device_train_batch_size=8, learning_rate=5e-3, report_to=[],
        save_strategy="no", use_cpu=True, bf16=False, disable_tqdm=True, logging_steps=1, warmup_steps=0,
    )  # fmt: skip
    trainer = trl.DPOTrainer(model=model, args=config, train_dataset=data, processing_class=tokenizer)
    trainer.train()
    margins = [log["rewards/margins"] for log in trainer.state.log_history if "rewards/margins" in log]
    assert sum(margins[-4:]) / 4 > sum(margins[:4]) / 4 + 0.2


def test_grpo_moves_its_reward(tmp_path):
    trl = pytest.importorskip("trl", reason="TRL is not installed")
    model, tokenizer = tiny()
    data = Dataset.from_list([{"prompt": "Say a number. ", "answer": "5"}] * 64)
    config = trl.GRPOConfig(
        output_dir=str(tmp_path), max_steps=24, per_device_train_batch_size=32, num_generations=32, learning_rate=2e-2,
        max_completion_length=1, report_to=[], save_strategy="no", use_cpu=True, bf16=False, disable_tqdm=True,
        logging_steps=1, beta=0.0, warmup_steps=0, lr_scheduler_type="constant", temperature=1.0,
    )  # fmt: skip

    def a_digit(completions, **columns):
        return [float(any(letter.isdigit() for letter in text)) for text in completions]

    trainer = trl.GRPOTrainer(
        model=model, reward_funcs=[AnswerReward("math", scale=10.0), a_digit], args=config, train_dataset=data,
        processing_class=tokenizer,
    )  # fmt: skip
    trainer.train()
    rewards = [log["reward"] for log in trainer.state.log_history if "reward" in log]
    assert sum(rewards[-4:]) / 4 > sum(rewards[:4]) / 4 + 0.3, rewards
