"""Only supervised positions reach the head, in chunks, and nothing but speed and memory shows it."""

import pytest
import torch
from tiny_chats import TEXT, VISION, Row, cross_entropies, encode, gradients, make, two_rows

from smmd_lightning.backbones import LanguageBackbone
from smmd_lightning.types import IGNORE_INDEX

CHATS = [Row("What time is it?"), Row("And in words, please?", "12:34"), Row("?", "00:00")]


def losses_and_gradients(backbone, inputs, labels):
    backbone.zero_grad()
    (losses,) = backbone(inputs, labels, cross_entropies)
    losses.mean().backward()
    return losses.detach(), gradients(backbone)


def test_chunks_change_neither_loss_nor_gradient():
    inputs, labels = encode("llama", CHATS)
    whole = losses_and_gradients(make("llama"), inputs, labels)
    for chunk in (1, 4, 14, 15, 16):
        in_chunks = losses_and_gradients(make("llama", head_chunk=chunk), inputs, labels)
        torch.testing.assert_close(in_chunks, whole)


def test_no_more_than_a_chunk_reaches_the_head_at_once():
    inputs, labels = encode("llama", CHATS)
    sizes = []

    def score(logits, targets):
        sizes.append(tuple(logits.shape))
        return logits.sum(1), targets

    backbone = make("llama", head_chunk=4)
    with torch.no_grad():
        sums, targets = backbone(inputs, labels, score)
    assert sizes == [(4, backbone.head_rows)] * 3 + [(3, backbone.head_rows)]
    assert len(sums) == 15
    assert torch.equal(targets, labels[:, 1:][labels[:, 1:] != IGNORE_INDEX])


def test_labels_are_shifted_once():
    """The logits scored against a label are those of the position before it."""
    inputs, labels = encode("llama", CHATS)
    backbone = make("llama")
    (logits,) = backbone(inputs, labels, lambda logits, targets: (logits,))
    full = backbone.model(**inputs).logits
    rows, places = (labels != IGNORE_INDEX).nonzero(as_tuple=True)
    torch.testing.assert_close(logits, full[rows, places - 1])


@pytest.mark.parametrize("name", ["llama", "qwen3-vl"])
def test_without_supervised_positions_every_parameter_gets_a_zero_gradient(name):
    inputs, labels = encode(name, two_rows() if name in VISION else CHATS)
    backbone = make(name)
    (losses,) = backbone(inputs, torch.full_like(labels, IGNORE_INDEX), cross_entropies)
    assert losses.shape == (0,)
    losses.sum().backward()
    found = gradients(backbone)
    assert set(found) == set(backbone.trainable_names())
    assert not any(gradient.any() for gradient in found.values())


@pytest.mark.parametrize("name", ["llama", "qwen2-vl", "llava"])
def test_gradient_checkpointing_changes_no_gradient(name):
    inputs, labels = encode(name, two_rows() if name in VISION else CHATS)
    plain = losses_and_gradients(make(name), inputs, labels)
    backbone = make(name, gradient_checkpointing=True)
    passes = []
    backbone.causal.get_decoder().layers[0].mlp.register_forward_pre_hook(lambda *_: passes.append(1))
    torch.testing.assert_close(losses_and_gradients(backbone, inputs, labels), plain)
    assert len(passes) == 2  # once forward, once again in the backward pass


def test_bfloat16_weights_train():
    inputs, labels = encode("qwen2-vl", two_rows())
    backbone = make("qwen2-vl", dtype="bfloat16")
    assert {parameter.dtype for parameter in backbone.parameters()} == {torch.bfloat16}
    losses, found = losses_and_gradients(backbone, inputs, labels)
    exact, _ = losses_and_gradients(make("qwen2-vl"), inputs, labels)
    torch.testing.assert_close(losses.float(), exact, rtol=0.02, atol=0.02)
    assert set(found) == set(backbone.trainable_names())


def test_auto_takes_the_dtype_of_the_files(tmp_path):
    make("llama", dtype="bfloat16").save_pretrained(tmp_path)
    for dtype, expected in (("auto", torch.bfloat16), ("float32", torch.float32)):
        backbone = LanguageBackbone(str(tmp_path), dtype=dtype)
        backbone.load()
        assert backbone.model.dtype == expected


def save_custom(config, folder, scale=1.0):
    """A folder with random weights of an architecture that has no preset."""
    from transformers import AutoModelForCausalLM

    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        model.get_output_embeddings().weight.mul_(scale)
    model.save_pretrained(folder)


SMALL = {
    "vocab_size": 64, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
    "num_key_value_heads": 2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip


@pytest.mark.parametrize("kind", ["Gemma2", "Cohere", "Granite"])
def test_heads_that_cap_or_scale_their_logits(kind, tmp_path, recwarn):
    import transformers

    extra = {
        "Gemma2": {"final_logit_softcapping": 2.0, "head_dim": 16},
        "Cohere": {"logit_scale": 0.25},
        "Granite": {"logits_scaling": 4.0},
    }[kind]
    save_custom(getattr(transformers, f"{kind}Config")(**SMALL, **extra), tmp_path, scale=50.0)
    backbone = LanguageBackbone(str(tmp_path))
    backbone.load()
    assert not [warning for warning in recwarn if "own forward" in str(warning.message)]
    inputs = {"input_ids": torch.tensor([[5, 6, 7, 8]])}
    own = backbone.model(**inputs).logits
    torch.testing.assert_close(backbone.head(backbone.encode(inputs)), own)
    plain = torch.nn.functional.linear(backbone.encode(inputs), backbone.model.get_output_embeddings().weight)
    assert (plain - own).abs().max() > 0.1  # the cap or scale is really there


def test_a_head_that_is_not_understood_runs_the_models_own_forward(monkeypatch):
    from transformers import LlamaForCausalLM

    own = LlamaForCausalLM.forward

    def doubled(self, *args, **kwargs):
        output = own(self, *args, **kwargs)
        output.logits = output.logits * 2
        return output

    inputs, labels = encode("llama", CHATS)
    monkeypatch.setattr(LlamaForCausalLM, "forward", doubled)
    with pytest.warns(UserWarning, match="LlamaForCausalLM .tiny:llama. runs its own forward"):
        backbone = make("llama", head_chunk=4)
    losses, found = losses_and_gradients(backbone, inputs, labels)
    full = backbone.model(**inputs).logits[:, :-1]
    supervised = labels[:, 1:] != IGNORE_INDEX
    torch.testing.assert_close(losses, cross_entropies(full[supervised], labels[:, 1:][supervised])[0])
    assert set(found) == set(backbone.trainable_names())


def test_a_kernel_for_gpus_does_not_stop_the_checks_at_load():
    """Weights may lie on the CPU at first, with an attention implementation that cannot run there."""
    from transformers import AttentionInterface

    def gpu_only(*args, **kwargs):
        raise RuntimeError("this kernel needs a GPU")

    AttentionInterface.register("gpu_only", gpu_only)
    backbone = make("llama", attention="gpu_only")
    assert backbone.config._attn_implementation == "gpu_only"
    with pytest.raises(RuntimeError, match="needs a GPU"):
        backbone.encode(encode("llama", CHATS)[0])


@pytest.mark.parametrize("name", TEXT)
def test_loading_twice_keeps_the_model(name):
    backbone = make(name)
    model = backbone.model
    backbone.load()
    assert backbone.model is model
    assert model.training


def test_a_chunk_below_one_is_refused():
    with pytest.raises(ValueError, match="head_chunk must be at least 1, got 0"):
        LanguageBackbone("tiny:llama", head_chunk=0)


def test_a_folder_that_lacks_weights_is_refused(tmp_path):
    from safetensors.torch import load_file, save_file

    make("llama").save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    state = load_file(file)
    state["model.layers.0.mlp.gone.weight"] = state.pop("model.layers.0.mlp.up_proj.weight")
    save_file(state, file, metadata={"format": "pt"})
    with pytest.raises(ValueError, match=r"(?s)missing \(1\): model.layers.0.mlp.up_proj.*unexpected \(1\).*gone"):
        LanguageBackbone(str(tmp_path)).load()
