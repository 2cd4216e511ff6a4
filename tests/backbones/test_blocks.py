"""What is sharded and recomputed one by one: every decoder layer and vision block of each family, and nothing twice."""

import pytest
from tiny_chats import TEXT, VISION, make

from smmd_lightning.backbones import LoRA


def depth(config):
    return getattr(config, "num_hidden_layers", None) or config.depth


@pytest.mark.parametrize("adapter", [None, LoRA(rank=2)], ids=["whole", "lora"])
@pytest.mark.parametrize("name", TEXT + VISION)
def test_blocks_are_all_layers_of_decoder_and_vision_tower(name, adapter):
    backbone = make(name, adapter=adapter)
    config = backbone.config
    decoder = depth(config.get_text_config())
    vision = depth(config.vision_config) if name in VISION else 0
    blocks = backbone.blocks
    kinds = [type(block).__name__ for block in blocks]
    assert sum("Decoder" in kind for kind in kinds) == decoder
    # CLIP and SigLIP name the embedding of patches too, which is sharded by itself.
    assert sum("Embeddings" not in kind for kind in kinds) == decoder + vision
    inside = {id(part) for block in blocks for part in block.modules() if part is not block}
    assert not inside & {id(block) for block in blocks}
    outside = {id(p) for p in backbone.parameters()} - {id(p) for block in blocks for p in block.parameters()}
    left = {key for key, value in backbone.named_parameters() if id(value) in outside}
    assert not [key for key in left if ".layers." in key or ".blocks." in key], left
