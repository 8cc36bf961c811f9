"""A model that is a configuration alone: vLLM makes its weights up (`load_format="dummy"`)."""

import json
from pathlib import Path

HEAD = 128
"""The size of a head that NPU attention is used to."""
PER_LAYER = 2
"""All-reduces of a layer over tensor-parallel ranks; the embedding has one more."""

LAYERS, EMULATED_LAYERS = 16, 2
"""On an NPU the more layers the steeper the growth; an emulated run copies real bytes."""


def collectives(layers: int) -> int:
    """Return the all-reduces in a graph of the model, more than one rank taken for granted."""
    return PER_LAYER * layers + 1


def layers(collectives: int) -> int:
    """Return the layers whose graph has as many all-reduces, one at least."""
    return max(1, (collectives - 1) // PER_LAYER)


def write(folder: Path, *, layers: int, ranks: int) -> Path:
    """Write the configuration of a Llama with as many layers, split over as many ranks; return its folder."""
    heads = ranks
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "num_hidden_layers": layers,
        "hidden_size": HEAD * heads,
        "intermediate_size": 2 * HEAD * heads,
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "head_dim": HEAD,
        "vocab_size": HEAD * heads,
        "max_position_embeddings": 1024,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "tie_word_embeddings": False,
        "hidden_act": "silu",
        "bos_token_id": 1,
        "eos_token_id": 2,
        "torch_dtype": "bfloat16",  # else vLLM looks for weights to tell
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config, indent=1), encoding="utf-8")
    return folder
