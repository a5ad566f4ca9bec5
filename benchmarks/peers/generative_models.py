"""Language models of litert-torch's generative API with random weights, as `.tflite` files: in its own environment.

    python generative_models.py FOLDER KIND ... [--preset PRESET] [--prefill N ...] [--entries N] [--batch N]
        [--transposed] [--mask-as-input]

Lives here: the configurations, and the call of litert-torch that converts and quantizes.
Not here: runs of the files (benchmarks/generative.py). This file imports nothing of the project.

KIND: of the weights; int8 and int4 (by blocks) have activations that are quantized at run time, float16 and weights8
have not. Prints the path of each file, one a line; a file that is there is kept.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import types
from pathlib import Path
from typing import Any

KINDS = ("float32", "float16", "weights8", "int8", "int4_32", "int4_64", "int4_128", "int4_256")
PRESETS: dict[str, dict[str, Any]] = {
    # SmolLM 135M, whose table of tokens is that of the logits, too
    "small": {"layers": 30, "size": 576, "inner": 1536, "heads": 9, "groups": 3, "head": 64, "vocabulary": 49152},
    # as Qwen 2.5 0.5B with fewer layers: 300 M weights
    "medium": {"layers": 12, "size": 1024, "inner": 4096, "heads": 16, "groups": 4, "head": 64, "vocabulary": 65536},
    "tiny": {"layers": 2, "size": 64, "inner": 256, "heads": 4, "groups": 2, "head": 16, "vocabulary": 128},
}


def model_of(preset: str, entries: int) -> tuple[Any, Any]:
    """Return a module with random weights of a trained model's size, and its configuration."""
    import litert_torch.generative.layers.model_config as cfg
    import torch
    from litert_torch.generative.utilities import model_builder

    p = PRESETS[preset]
    attention = cfg.AttentionConfig(
        num_heads=p["heads"], head_dim=p["head"], num_query_groups=p["groups"], rotary_base=10000, rotary_percentage=1.0
    )
    forward = cfg.FeedForwardConfig(
        type=cfg.FeedForwardType.GATED,
        activation=cfg.ActivationConfig(cfg.ActivationType.SILU),
        intermediate_size=p["inner"],
    )
    norm = cfg.NormalizationConfig(type=cfg.NormalizationType.RMS_NORM, enable_hlfb=True)
    block = cfg.TransformerBlockConfig(
        attn_config=attention, ff_config=forward, pre_attention_norm_config=norm, post_attention_norm_config=norm
    )
    config = cfg.ModelConfig(
        vocab_size=p["vocabulary"],
        num_layers=p["layers"],
        max_seq_len=entries,
        embedding_dim=p["size"],
        block_configs=block,
        final_norm_config=norm,
        enable_hlfb=True,
    )
    torch.manual_seed(0)
    module = model_builder.DecoderOnlyModel(config, mask_cache_size=entries)
    with torch.no_grad():
        for name, weight in module.named_parameters():
            if weight.dim() < 2:
                weight.uniform_(0.5, 1.5)
            else:
                weight.normal_(0, 1.0 if "embedding" in name else weight.shape[1] ** -0.5)
    return module.eval(), config


def import_without_tensorflow() -> None:
    """Import the module of litert-torch that asks TensorFlow for the schema of `.tflite` files: ai-edge-litert's do."""
    import litert_torch  # noqa: F401, before the names of TensorFlow, for which torch looks
    from ai_edge_litert import schema_py_generated

    if importlib.util.find_spec("tensorflow"):
        return
    names = ("tensorflow", "tensorflow.lite", "tensorflow.lite.python")
    sys.modules.update((name, types.ModuleType(name)) for name in names)
    sys.modules[names[-1]].schema_py_generated = schema_py_generated  # type: ignore[attr-defined]
    importlib.import_module("litert_torch.generative.layers.lora")
    for name in names:
        del sys.modules[name]


def quantized(content: bytes, kind: str, config: Any) -> bytes:
    """Return the file of floats quantized by litert-torch's recipe of a kind."""
    from litert_torch.generative.quantize import quant_attrs, quant_recipes
    from litert_torch.quantize import translate_recipe

    if kind == "int8":
        recipe = quant_recipes.full_dynamic_recipe(config)
    elif kind == "weights8":
        recipe = quant_recipes.full_weight_only_recipe(config)
    elif kind == "float16":
        recipe = quant_recipes.full_fp16_recipe(config)
    else:
        granularity = quant_attrs.Granularity[f"BLOCKWISE_{kind.removeprefix('int4_')}"]
        recipe = quant_recipes.full_dynamic_recipe(config, quant_attrs.Dtype.INT4, granularity)
    return bytes(
        translate_recipe.quantize_model(content, translate_recipe.translate_to_ai_edge_recipe(recipe.generative_recipe))
    )


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("kind", nargs="+", choices=KINDS)
    parser.add_argument("--preset", choices=PRESETS, default="tiny")
    parser.add_argument("--prefill", type=int, nargs="+", default=[128])
    parser.add_argument("--entries", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--transposed", action="store_true")
    parser.add_argument("--mask-as-input", action="store_true")
    options = parser.parse_args()
    import_without_tensorflow()
    from litert_torch.generative.layers import kv_cache
    from litert_torch.generative.utilities import converter, export_config

    module, config = model_of(options.preset, options.entries)
    words = [options.preset, str(options.entries), *(f"batch{n}" for n in [options.batch] if n > 1)]
    words += [word for word in ("transposed", "mask_as_input") if getattr(options, word)]
    paths = {kind: options.folder / f"{'_'.join([*words, kind])}.tflite" for kind in KINDS}
    floats = paths["float32"]
    if not floats.exists():
        options.folder.mkdir(parents=True, exist_ok=True)
        converted = converter.convert_to_tflite(
            module,
            str(options.folder),
            floats.stem,
            options.prefill,
            options.entries,
            quantize="none",
            config=config,
            export_config=export_config.ExportConfig(
                kvcache_layout=kv_cache.KV_LAYOUT_TRANSPOSED if options.transposed else kv_cache.KV_LAYOUT_DEFAULT,
                decode_batch_size=options.batch,
                mask_as_input=options.mask_as_input,
            ),
        )
        os.replace(converted, floats)
    for kind in options.kind:
        if not paths[kind].exists():
            paths[kind].write_bytes(quantized(floats.read_bytes(), kind, config))
        print(paths[kind])


if __name__ == "__main__":
    main()
