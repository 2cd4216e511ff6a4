"""One Hugging Face model, split where training splits it: everything up to the last hidden state, and the head.

Unusual here: the head (hidden state -> vocabulary) never sees the whole batch. `forward` encodes once, keeps the hidden
states of supervised positions only, and passes those through head and loss in chunks that are recomputed in the
backward pass. No tensor of shape (B, T, V) exists.

Shape legend: B rows, T positions of a row, S supervised positions, D hidden size, V rows of the head.

One real example, a tiny Llama that is written to the cache, loaded and asked for its cross-entropy::

    backbone = LanguageBackbone("tiny:llama")
    backbone.load()
    (loss_S,) = backbone(inputs, labels, lambda logits_SV, targets_S: (cross_entropy(logits_SV, targets_S),))
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from torch import Tensor, nn

from smmd_lightning.backbones.adapters import LoRA
from smmd_lightning.backbones.compiling import check_compiler, uncompiled
from smmd_lightning.backbones.generation import continue_prompts, is_sharded, likely_continuations
from smmd_lightning.backbones.loading import ModelSource, build, checkpoint_blocks
from smmd_lightning.backbones.naming import freeze_matching
from smmd_lightning.backbones.probes import adjust_logits, check_packing, evaluating, is_packed, splits_at_head
from smmd_lightning.backbones.processors import load_processor
from smmd_lightning.backbones.quantization import Quantization, check_quantized
from smmd_lightning.backbones.scoring import Score, Watch, score_supervised
from smmd_lightning.compat.of_transformers import block_names

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

SOURCE_SETTINGS = ("revision", "dtype", "attention", "trust_remote_code", "from_scratch", "quantization")
DTypeName = Literal["auto", "float32", "bfloat16", "float16"]


class Backbone(nn.Module, ABC):
    """A Hugging Face model that is loaded late and scored at supervised positions only.

    `__init__` keeps plain settings; `load` builds the model. Everything that touches parameters goes through `forward`
    or `generate`, so that FSDP can gather them there. For FSDP: the head must stay in the outermost group, since
    the number of chunks differs between ranks; `blocks` lists what can be sharded one by one.

    Args:
        path: Folder, hub name, `folder/file.gguf`, or one of our own names (see `locate.locate`): "tiny:qwen2-vl".
        revision: Branch, tag or commit on the hub.
        dtype: Type of the parameters. "auto" takes what the files hold. With Lightning's mixed precision leave
            "float32"; with "bf16-true" and for inference take "bfloat16".
        attention: Attention implementation of transformers ("sdpa", "eager", "flash_attention_2", …); None: its choice.
        trust_remote_code: Run Python code that comes with the model. Off: such models are refused.
        from_scratch: New random weights for the model's configuration, from torch's global generator.
        quantization: Keep base weights in 4 or 8 bits (needs an adapter); None: as `dtype` says.
        adapter: LoRA settings; None trains the model's own weights.
        freeze: Patterns (`fnmatch`) of parameter names that are not trained, e.g. "model.embed_tokens.*".
        gradient_checkpointing: Recompute activations of the blocks in the backward pass.
        compile_blocks: Fuse each block's operations by `torch.compile` in training and scoring (not in generation).
            The first steps take a minute or two.
        head_chunk: Most supervised positions that pass through the head at once.

    Raises:
        ValueError: `head_chunk` is below 1, or settings cannot go with `quantization`.
    """

    def __init__(
        self,
        path: str,
        *,
        revision: str | None = None,
        dtype: DTypeName = "float32",
        attention: str | None = None,
        trust_remote_code: bool = False,
        from_scratch: bool = False,
        quantization: Quantization | None = None,
        adapter: LoRA | None = None,
        freeze: Sequence[str] = (),
        gradient_checkpointing: bool = False,
        compile_blocks: bool = False,
        head_chunk: int = 2048,
    ) -> None:
        super().__init__()
        if head_chunk < 1:
            raise ValueError(f"head_chunk must be at least 1, got {head_chunk}")
        self.path = path
        self.revision = revision
        self.dtype: DTypeName = dtype
        self.attention = attention
        self.trust_remote_code = trust_remote_code
        self.from_scratch = from_scratch
        if quantization is not None:
            check_quantized(adapter, from_scratch, path)
        self.quantization = quantization
        self.adapter = adapter
        self.freeze = tuple(freeze)
        self.gradient_checkpointing = gradient_checkpointing
        self.compile_blocks = compile_blocks
        self.head_chunk = head_chunk
        self._head_is_separate = True
        self._keeps_packed_rows_apart = False

    @abstractmethod
    def auto_class(self) -> Any:
        """Returns the `transformers` Auto class that builds this kind of model."""

    def freeze_parts(self, causal: PreTrainedModel) -> None:
        """Freezes what the settings name; subclasses add their parts."""
        freeze_matching(causal, self.freeze)

    def language_module(self, causal: PreTrainedModel) -> nn.Module:
        """Returns the part that adapters go to by default."""
        return causal

    def settle(self) -> None:
        """Last step of `load`, with adapters in place; subclasses add what they need."""

    @property
    def source(self) -> ModelSource:
        """Which model the settings describe."""
        settings = {name: getattr(self, name) for name in SOURCE_SETTINGS}
        return ModelSource(self.path, self.auto_class(), type(self).__name__, **settings)

    @property
    def loaded(self) -> bool:
        """Whether `load` has built the model."""
        return hasattr(self, "model")

    @property
    def causal(self) -> PreTrainedModel:
        """The Hugging Face model itself, without the wrapper that an adapter puts around it.

        Raises:
            RuntimeError: `load` has not been called.
        """
        if not self.loaded:
            raise RuntimeError(f"the weights of {self.path!r} are not loaded: call load() first")
        model: Any = self.model
        return model.get_base_model() if hasattr(model, "get_base_model") else model

    @property
    def config(self) -> PretrainedConfig:
        """Configuration of the loaded model."""
        return self.causal.config

    @property
    def head_rows(self) -> int:
        """V, the rows of the head; may be more than the tokenizer has entries."""
        return len(self.head_weight)

    @property
    def head_weight(self) -> Tensor:
        """(V, D) weights of the head."""
        return self.causal.get_output_embeddings().weight

    @property
    def blocks(self) -> list[nn.Module]:
        """The repeated blocks of decoder and vision tower, in order: what FSDP shards one by one."""
        names = block_names(self.causal)
        return [module for module in self.causal.modules() if type(module).__name__ in names]

    def trainable_names(self) -> list[str]:
        """Names (as in `named_parameters`) of the parameters that are trained."""
        return [name for name, parameter in self.named_parameters() if parameter.requires_grad]

    def load(self) -> None:
        """Builds the model: weights, frozen parts, adapter, gradient checkpointing. A second call does nothing.

        The model lands on torch's default device (`with torch.device(...)`), read straight from the files.

        Raises:
            OSError: The model cannot be found.
            ValueError: A setting does not fit the model.
        """
        if self.loaded:
            return
        if self.compile_blocks:
            check_compiler()
        causal = build(self.source)
        self.freeze_parts(causal)
        self.model = causal if self.adapter is None else self.adapter.attach(causal, self.language_module(causal))
        if self.gradient_checkpointing:
            checkpoint_blocks(causal)
        self._head_is_separate = splits_at_head(self.causal, self.encode, self.head, self.path)
        self.settle()
        if self.compile_blocks:
            for block in self.blocks:
                block.compile()
        # from_pretrained leaves the model in evaluation mode, where transformers ignores gradient checkpointing.
        self.train()

    def save_pretrained(self, folder: str | Path, state_dict: dict[str, Tensor] | None = None) -> None:
        """Writes a Hugging Face folder with model and processor; of an adapted model, the adapter alone and processor.

        Args:
            folder: Where to; made where it does not exist.
            state_dict: The model's whole weights by name, where they are spread over processes. None: its own.
        """
        model: Any = self.model
        model.save_pretrained(folder, **({} if state_dict is None else {"state_dict": state_dict}))
        processor = load_processor(self.path, revision=self.revision, trust_remote_code=self.trust_remote_code)
        processor.save_pretrained(folder)

    def encode(self, inputs: dict[str, Tensor]) -> Tensor:
        """Runs the model up to its head.

        Args:
            inputs: What the processor made, without labels: `input_ids` (B, T), `attention_mask` (B, T), …; of
                packed rows, `input_ids` and `position_ids` (1, T), which restart with each row.

        Returns:
            Last hidden states (B, T, D); of a model whose head cannot be split off, the logits (B, T, V).

        Raises:
            ValueError: The first packed rows, where the model's attention implementation mixes them.
        """
        if is_packed(inputs) and not self._keeps_packed_rows_apart:
            self._keeps_packed_rows_apart = True  # the check comes here again
            check_packing(self.causal, self.encode)
        causal: Any = self.causal
        if not self._head_is_separate:
            return causal(**inputs, use_cache=False, return_dict=True).logits
        return causal.base_model(**inputs, use_cache=False, return_dict=True).last_hidden_state

    def head(self, hidden_SD: Tensor) -> Tensor:
        """Turns hidden states into logits (S, V), with the scaling and soft-capping that the architecture has."""
        if not self._head_is_separate:
            return hidden_SD
        causal: Any = self.causal
        return adjust_logits(causal.get_output_embeddings()(hidden_SD), self.config.get_text_config())

    def forward(
        self, inputs: dict[str, Tensor], labels: Tensor, score: Score, watch: Watch | None = None
    ) -> tuple[Tensor, ...]:
        """Scores the supervised positions.

        Args:
            inputs: Model inputs, see `encode`.
            labels: (B, T), `IGNORE_INDEX` where nothing is supervised, aligned with `input_ids`; shifted here.
            score: Called with `(logits_SV, targets_S)` for chunks of at most `head_chunk` positions; every output has
                its chunk's positions along dimension 0.
            watch: Called with the S positions' hidden states (S, D) and outputs while sharded weights are whole.

        Returns:
            The outputs of `score` for all S supervised positions, row by row. With S = 0 they are empty but joined
            to the graph, so that a backward pass reaches every parameter with zeros and no rank waits for another.
        """
        return score_supervised(self.encode(inputs), labels, self.head, score, self.head_chunk, watch)

    def before_generation(self, inputs: dict[str, Tensor]) -> None:
        """Does what prompts need first; subclasses add what they need."""

    def generate(self, inputs: dict[str, Tensor], max_new_tokens: int, **options: Any) -> Tensor:
        """Continues prompts, greedily unless told otherwise.

        Sampling settings that come with a model (temperature, repetition penalty, …) are not used: a penalty on
        repetition makes "11:11" hard to say. Give them as `options` to have them.

        Args:
            inputs: Model inputs of left-padded prompts.
            max_new_tokens: Most tokens to add.
            **options: Anything else that `transformers`' `generate` takes.

        Returns:
            Token ids (B, at most `max_new_tokens`) of the continuation alone; rows that ended are filled with pad.
        """
        self.before_generation(inputs)
        with evaluating(self), uncompiled():
            return continue_prompts(self.causal, inputs, max_new_tokens, is_sharded(self), **options)

    def likely(
        self, inputs: dict[str, Tensor], max_new_tokens: int, most: int, **options: Any
    ) -> tuple[Tensor, Tensor]:
        """Finds the `most` likeliest continuations of each prompt, see `generation.likely_continuations`."""
        self.before_generation(inputs)
        with evaluating(self), uncompiled():
            return likely_continuations(self.causal, inputs, max_new_tokens, most, is_sharded(self), **options)
