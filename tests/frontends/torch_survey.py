"""Survey of `ow.from_torch`: architectures of torchvision, timm and transformers, and PyTorch's operator database.

    python tests/frontends/torch_survey.py vision timm transformers operators --rows rows.jsonl -o survey.md

Each row runs in a process of its own, with a limit of time. It compares the imported function with eager PyTorch, 1e-4
relative to the largest element; `--convert` also converts each architecture, counts operators and transposes, and runs
the official interpreter. Weights are random, and configurations small. Needs torch, and torchvision, timm,
transformers for their rows; not part of `make test`.
"""

from __future__ import annotations

import argparse
import collections
import functools
import json
import os
import resource
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

import opwright as ow
from opwright.frontends.missing_operators import MissingOperators
from opwright.frontends.torch.detectors import exportable

LIMIT = 1e-4


class Row(NamedTuple):
    """One subject. outcome: "pass", or why it fails."""

    family: str
    name: str
    outcome: str
    figures: str = ""


def error_of(actual: Any, expected: torch.Tensor, floor: float = 1e-6) -> float:
    """Return the largest difference relative to the largest element; infinity where shapes or NaNs differ.

    floor: the least element to be relative to
    """
    expected = expected.float() if expected.dtype is torch.bfloat16 else expected
    a, b = np.asarray(actual), expected.detach().resolve_conj().resolve_neg().numpy()
    if a.shape != b.shape:
        return float("inf")
    if not a.size:
        return 0.0
    a, b = (v.astype(np.complex128 if np.iscomplexobj(v) else np.float64) for v in (a, b))
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if same.all():
        return 0.0
    finite = np.abs(b[np.isfinite(b)])
    scale = max(float(finite.max()) if finite.size else 0.0, floor)
    difference = np.abs(np.where(same, 0, a - b))
    return float(np.nan_to_num(difference, nan=np.inf).max()) / scale


def tensors_of(structure: Any) -> list[torch.Tensor]:
    return [v for v in pytree.tree_leaves(structure) if isinstance(v, torch.Tensor)]


def leaves_of(structure: Any) -> list[Any]:
    """Return the leaves of results in the order of PyTorch, which does not sort the keys of dictionaries."""
    members = structure.values() if isinstance(structure, dict) else structure
    if not isinstance(structure, (dict, list, tuple)):
        return [structure]
    return [leaf for member in members for leaf in leaves_of(member)]


def boxes_error(results: list[Any], expected: list[torch.Tensor]) -> float:
    """Return the largest relative error of boxes, scores and labels, and of masks or keypoints, paired by their values:
    scores that differ by rounding come in any order. Infinity if more than 1 in 100 has no pair, as where an overlap is
    at the threshold."""
    (boxes, scores, labels, *more), truth = ([np.asarray(v) for v in several] for several in (results, expected))
    if scores.shape != truth[1].shape:
        return float("inf")
    free, worst, alone = np.ones(len(scores), bool), 0.0, 0
    size = max(float(np.abs(truth[0]).max(initial=0)), 1e-30)
    scales = [max(float(np.abs(v).max(initial=0)), 1e-30) for v in truth[3:]]
    for box, score, label, *others in zip(*truth):
        errors = np.maximum(np.abs(boxes - box).max(1) / size, np.abs(scores - score))
        for values, other, scale in zip(more, others, scales):
            errors = np.maximum(errors, np.abs(values - other).reshape(len(values), -1).max(1) / scale)
        errors = np.where(free & (labels == label), errors, np.inf)
        best = int(errors.argmin())
        if errors[best] <= LIMIT:
            free[best], worst = False, max(worst, float(errors[best]))
        else:
            alone += 1
    return worst if alone <= 0.01 * len(scores) else float("inf")


def reason_of(error: BaseException) -> str:
    if isinstance(error, MissingOperators):
        return f"no rule: {', '.join(error.operators)}"
    lines = [line for line in str(error).splitlines() if line.strip()]
    text = " ".join(lines[:2]) if lines else ""
    return f"{type(error).__name__}: {text}".replace("|", "/")[:220]


def settled(module: torch.nn.Module, *args: Any) -> torch.nn.Module:
    """Return a module for inference whose batch norms divide by the size of an input's signals, so that these neither
    vanish nor explode in a network of random weights. Means are zero: a difference of large numbers has few digits."""
    for parameter in module.parameters():
        if not parameter.detach().any():  # heads begin with zeros
            torch.nn.init.normal_(parameter, std=0.02)
    norms = [m for m in module.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    module.eval()
    for norm in norms:
        norm.train()
        norm.momentum = 1.0
    try:
        with torch.no_grad():
            module(*(torch.cat([a, torch.randn_like(a)]) for a in args))
    except (RuntimeError, ValueError):  # a batch norm of one value
        pass
    for norm in norms:
        if norm.running_mean is not None and norm.running_var is not None:
            norm.running_var += norm.running_mean.square()
            norm.running_mean.zero_()
    return module.eval()


class Refused(Exception):
    """Raised for a program that `torch.export` does not export."""


def copied(structure: Any) -> Any:
    """Return arguments with clones of the tensors, which a program may change."""
    return pytree.tree_map(lambda v: v.clone() if isinstance(v, torch.Tensor) else v, structure)


def compare(
    module: Any, args: tuple[Any, ...], kwargs: dict[str, Any], convert: bool = False, **options: Any
) -> tuple[str, str]:
    """Return the outcome of one program, and figures of its conversion."""
    with torch.no_grad():
        several, named = copied((args, kwargs))
        expected = tensors_of(module(*several, **named))
        start = time.perf_counter()
        several, named = copied((args, kwargs))
        try:
            with exportable():
                program = torch.export.export(module, several, named, strict=False)
        except Exception as error:
            raise Refused(f"torch.export refuses it: {reason_of(error)}") from error
        exported = time.perf_counter()
    function = ow.from_torch(program, **options)
    inputs = [v.detach().resolve_conj().resolve_neg().numpy() for v in tensors_of((args, kwargs))]
    structure = function(*inputs)
    results = [v for v in leaves_of(structure) if v is not None]
    if len(results) != len(expected):
        return f"{len(results)} results instead of {len(expected)}", ""
    floor = 1e-30 if convert else 1e-6  # architectures compute no zeros
    detects = isinstance(module, _Detector)
    if detects and len(expected[1]) < 2:
        return "PyTorch finds no boxes", ""
    worst = max([error_of(a, b, floor) for a, b in zip(results, expected)], default=0.0)
    worst = boxes_error(results, expected) if detects else worst
    if not worst <= LIMIT:
        return f"error {worst:.1e}", ""
    if convert and not all(v.isfinite().all() and v.any() for v in expected if v.numel()):
        return "the results of PyTorch are zeros, or not finite", ""
    figures = f"error {worst:.0e}, export {exported - start:.1f} s, import {time.perf_counter() - exported:.1f} s"
    if convert:
        try:
            places = {id(v): i for i, v in enumerate(results)}
            figures += ", " + converted(
                function,
                inputs,
                [expected[places[id(v)]] for v in ow.nest.flatten(structure) if v is not None],
                detects,
            )
        except Exception as error:
            figures += f", .tflite: {reason_of(error)}"
    return "pass", figures


def compare_steps(module: Any, steps: list[tuple[torch.Tensor, torch.Tensor]]) -> tuple[str, str]:
    """Return the outcome of successive calls of a module whose buffers are a cache: ids and their positions."""
    ids, position = steps[0]
    with torch.no_grad():
        kwargs = {"input_ids": ids, "cache_position": position}
        program = torch.export.export(module, (), kwargs, strict=False)
        function = ow.from_torch(program)
        worst = 0.0
        for ids, position in steps:
            (actual,) = (v for v in ow.nest.flatten(function(ids.numpy(), position.numpy())) if v is not None)
            worst = max(worst, error_of(actual, module(input_ids=ids, cache_position=position), 1e-30))
    return ("pass" if worst <= LIMIT else f"error {worst:.1e}"), f"error {worst:.0e} in {len(steps)} steps"


def converted(function: Any, inputs: list[np.ndarray], expected: list[torch.Tensor], detects: bool = False) -> str:
    """Return figures of the .tflite file: operators, transposes besides those of inputs and outputs, errors."""
    from ai_edge_litert import interpreter as litert

    start = time.perf_counter()
    data = ow.lite.TFLiteConverter.from_concrete_functions([function.concrete()]).convert()
    seconds = time.perf_counter() - start
    resolver = litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    runner = litert.Interpreter(model_content=data, experimental_op_resolver_type=resolver)
    runner.allocate_tensors()
    operators = collections.Counter(o["op_name"] for o in runner._get_ops_details())
    for detail, value in zip(runner.get_input_details(), inputs):
        runner.set_tensor(detail["index"], value)
    runner.invoke()
    results = [runner.get_tensor(d["index"]) for d in runner.get_output_details()]
    worst = max(error_of(a, b) for a, b in zip(results, expected))
    worst = boxes_error(results, expected) if detects else worst
    return (
        f"convert {seconds:.1f} s, {sum(operators.values())} operators, {operators['TRANSPOSE']} TRANSPOSE, "
        f"official interpreter {worst:.0e}"
    )


def attempt(family: str, name: str, action: Callable[[], tuple[str, str]], verbose: bool) -> Row:
    try:
        outcome, figures = action()
    except Exception as error:
        if verbose:
            traceback.print_exc()
        outcome, figures = reason_of(error), ""
    row = Row(family, name, outcome, figures)
    print(f"{row.family:13} {row.name:42} {row.outcome}  {row.figures}", flush=True)
    return row


def words(text: str) -> list[str]:
    """Return the names of a list."""
    return text.split()


# ---- architectures ----------------------------------------------------------------------------------------------

VISION = words(
    "alexnet convnext_tiny densenet121 efficientnet_b0 efficientnet_v2_s googlenet inception_v3 maxvit_t mnasnet0_5 "
    "mobilenet_v2 mobilenet_v3_small regnet_x_400mf regnet_y_400mf resnet18 resnet50 resnext50_32x4d "
    "shufflenet_v2_x0_5 squeezenet1_1 swin_t swin_v2_t vgg11 vgg11_bn vit_b_32 wide_resnet50_2 "
    "segmentation.deeplabv3_mobilenet_v3_large segmentation.deeplabv3_resnet50 segmentation.fcn_resnet50 "
    "segmentation.lraspp_mobilenet_v3_large video.r3d_18 video.mc3_18 video.r2plus1d_18 video.s3d"
)
SIZES = {
    "efficientnet_v2_s": 128,
    "inception_v3": 96,
    "maxvit_t": 224,
    "swin_v2_t": 64,
    "vit_b_32": 224,
    "alexnet": 96,
    "video.s3d": 224,
}


def vision(only: str) -> Iterator[tuple[str, Callable[..., tuple[str, str]]]]:
    from torchvision import models

    for name in VISION:

        def action(convert: bool = False, name: str = name) -> tuple[str, str]:
            torch.manual_seed(0)
            builder: Any = models
            for part in name.split("."):
                builder = getattr(builder, part)
            options = {"weights": None}
            if name.startswith("segmentation"):
                options["weights_backbone"] = None
            if name in ("googlenet", "inception_v3"):
                options["init_weights"] = False
            size = SIZES.get(name, 64)
            x = torch.randn((1, 3, 16, size, size) if name.startswith("video") else (1, 3, size, size))
            return compare(settled(builder(**options), x), (x,), {}, convert)

        yield name, action


CHOSEN: dict[str, tuple[str, dict[str, Any]]] = {
    "beit": ("beit_base_patch16_224", {"depth": 2}),
    "cait": ("cait_xxs24_224", {"depth": 2}),
    "crossvit": ("crossvit_tiny_240", {}),
    "deepseek_vit": ("deepseek_vit_412m", {"depth": 2}),
    "deit": ("deit_tiny_patch16_224", {"depth": 2}),
    "dla": ("dla46_c", {}),
    "eva": ("eva02_tiny_patch14_224", {"depth": 2}),
    "focalnet": ("focalnet_tiny_srf", {}),
    "gcvit": ("gcvit_xxtiny", {}),
    "gemma4_vit": ("gemma4_vit_167m", {"depth": 2}),
    "hrnet": ("hrnet_w18_small", {}),
    "levit": ("levit_128s", {}),
    "mlp_mixer": ("mixer_s32_224", {}),
    "naflexvit": ("naflexvit_base_patch16_siglip", {"depth": 2}),
    "qwen3_vit": ("qwen3_vit_88m", {"depth": 2}),
    "senet": ("legacy_seresnet18", {}),
    "swin_transformer": ("swin_tiny_patch4_window7_224", {}),
    "tnt": ("tnt_s_patch16_224", {"depth": 2}),
    "tresnet": ("tresnet_m", {}),
    "twins": ("twins_svt_small", {}),
    "vision_transformer": ("vit_tiny_patch16_224", {"depth": 2}),
    "vision_transformer_hybrid": ("vit_small_r26_s32_224", {"depth": 2}),
    "vision_transformer_relpos": ("vit_relpos_small_patch16_224", {"depth": 2}),
    "vision_transformer_sam": ("samvit_base_patch16_224", {"depth": 2}),
    "xcit": ("xcit_nano_12_p16_224", {"depth": 2}),
}
"""Models of families whose smallest ones are large, with options that leave fewer blocks."""


def timm_models(only: str) -> Iterator[tuple[str, Callable[..., tuple[str, str]]]]:
    import timm

    families: dict[str, list[str]] = collections.defaultdict(list)
    for name in timm.list_models():
        module = timm.models._registry._model_to_module.get(name, name)
        families[module].append(name)
    small = ("atto", "femto", "pico", "nano", "tiny", "xxs", "xs", "_s0", "small", "_b0", "18", "s12", "_s")
    for module, names in sorted(families.items()):
        least = min(names, key=lambda n: (not any(s in n for s in small), len(n), n))
        best, fewer = CHOSEN.get(module, (least, {}))

        def action(convert: bool = False, name: str = best, fewer: dict[str, Any] = fewer) -> tuple[str, str]:
            torch.manual_seed(0)
            model = timm.create_model(name, pretrained=False, **fewer).eval()
            config = model.default_cfg
            size = config["input_size"][1:] if config.get("fixed_input_size") else (96, 96)
            x = torch.randn(1, config["input_size"][0], *size)
            try:
                model(x)
            except (AssertionError, RuntimeError, ValueError):
                x = torch.randn(1, *config["input_size"])
            return compare(settled(model, x), (x,), {}, convert)

        yield f"{module}: {best}", action


def transformer_models(only: str) -> Iterator[tuple[str, Callable[..., tuple[str, str]]]]:
    import transformers
    from transformers.integrations.executorch import TorchExportableModuleWithStaticCache

    small = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "vocab_size": 99,
        "max_position_embeddings": 64,
    }
    names = {
        "n_embd": 32,
        "n_layer": 2,
        "n_head": 4,
        "d_model": 32,
        "d_ff": 64,
        "d_kv": 8,
        "num_layers": 2,
        "num_heads": 4,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 64,
        "decoder_ffn_dim": 64,
        "dim": 32,
        "n_heads": 4,
        "n_layers": 2,
        "hidden_dim": 64,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "embedding_size": 32,
        "word_embed_proj_dim": 32,
        "ffn_dim": 64,
        "num_decoder_layers": 2,
        "rotary_dim": 4,
        "n_positions": 64,
        "emb_dim": 32,
        "pad_token_id": 0,
        "num_experts": 4,
        "num_local_experts": 4,
    }
    special: dict[str, dict[str, Any]] = {"GPTNeo": {"attention_types": [[["global", "local"], 1]]}}
    encoders = words(
        "Bert Roberta Electra DistilBert Albert MPNet MobileBert XLMRoberta Camembert DebertaV2 Deberta ConvBert "
        "RoFormer Ernie Funnel LayoutLM SqueezeBert Nystromformer MegatronBert RemBert XLM Flaubert Data2VecText "
        "ModernBert Splinter Yoso Mra Canine"
    )
    decoders = words(
        "GPT2 GPTNeo GPTNeoX GPTJ OPT Bloom Llama Mistral Mixtral Qwen2 Qwen3 Gemma Gemma2 Gemma3Text Phi Phi3 Falcon "
        "StableLm Starcoder2 Cohere Olmo Olmo2 Granite CodeGen Mpt GPTBigCode Helium SmolLM3 BioGpt XGLM Persimmon"
    )
    pairs = words("T5 MT5 Bart MBart Pegasus Marian BlenderbotSmall M2M100 LED ProphetNet")
    images = words(
        "ViT DeiT Swin ConvNext ConvNextV2 Beit Dinov2 MobileViT MobileNetV2 ResNet RegNet PoolFormer Segformer LevIt "
        "Cvt Swinv2 PvtV2 ViTMAE"
    )
    sounds = words("Wav2Vec2 Hubert Whisper ASTModel:AST UniSpeech SEW WavLM")

    def configured(kind: str, **more: Any) -> Any:
        config_class = getattr(transformers, f"{kind}Config")
        fields = vars(config_class())
        alike = getattr(config_class, "attribute_map", {})
        values = {k: v for k, v in {**small, **names, **more}.items() if k in fields or k in alike}
        values.update(special.get(kind, {}))
        config = config_class(**values)
        config.use_cache, config._attn_implementation = False, "eager"
        return config

    def text(kind: str, suffix: str = "Model", pair: bool = False) -> Callable[..., tuple[str, str]]:
        def action(convert: bool = False) -> tuple[str, str]:
            torch.manual_seed(0)
            model = getattr(transformers, f"{kind}{suffix}")(configured(kind)).eval()
            kwargs = {"input_ids": torch.randint(1, 90, (1, 16))}
            if pair:
                kwargs["decoder_input_ids"] = torch.randint(1, 90, (1, 8))
            return compare(model, (), kwargs, convert)

        return action

    def image(kind: str) -> Callable[..., tuple[str, str]]:
        def action(convert: bool = False) -> tuple[str, str]:
            torch.manual_seed(0)
            deep = kind in ("ViT", "DeiT", "Beit", "Dinov2", "ViTMAE")
            config = configured(kind, image_size=64) if deep else getattr(transformers, f"{kind}Config")()
            model = getattr(transformers, f"{kind}Model")(config).eval()
            size = getattr(config, "image_size", 64) or 64
            size = size if isinstance(size, int) else size[0]
            return compare(model, (torch.randn(1, 3, size, size),), {}, convert)

        return action

    def sound(kind: str) -> Callable[..., tuple[str, str]]:
        def action(convert: bool = False) -> tuple[str, str]:
            torch.manual_seed(0)
            if kind == "Whisper":
                config = configured(kind, max_source_positions=20, max_target_positions=20)
                kwargs = {
                    "input_features": torch.randn(1, config.num_mel_bins, 40),
                    "decoder_input_ids": torch.randint(1, 90, (1, 8)),
                }
                return compare(transformers.WhisperModel(config).eval(), (), kwargs, convert)
            config = configured(kind, conv_dim=[32] * 7)
            return compare(getattr(transformers, f"{kind}Model")(config).eval(), (torch.randn(1, 4000),), {}, convert)

        return action

    def cached(kind: str) -> Callable[..., tuple[str, str]]:
        def action(convert: bool = False) -> tuple[str, str]:
            torch.manual_seed(0)
            config = configured(kind)
            config.use_cache = True
            model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval()
            model.generation_config = transformers.GenerationConfig(use_cache=True, cache_implementation="static")
            step = TorchExportableModuleWithStaticCache(model, batch_size=1, max_cache_len=16, device="cpu")
            return compare_steps(step, [(torch.randint(1, 90, (1, 1)), torch.tensor([t])) for t in range(4)])

        return action

    for kind in encoders + decoders:
        yield kind, text(kind)
    for kind in decoders:
        yield f"{kind} step with cache", cached(kind)
    for kind in pairs:
        yield kind, text(kind, pair=True)
    for kind in images:
        yield kind, image(kind)
    for kind in sounds:
        if ":" not in kind:
            yield kind, sound(kind)


# ---- detectors ----------------------------------------------------------------------------------------------------

DETECTORS = words(
    "ssdlite320_mobilenet_v3_large ssd300_vgg16 fcos_resnet50_fpn retinanet_resnet50_fpn "
    "fasterrcnn_mobilenet_v3_large_320_fpn fasterrcnn_mobilenet_v3_large_fpn fasterrcnn_resnet50_fpn "
    "fasterrcnn_resnet50_fpn_v2 retinanet_resnet50_fpn_v2 maskrcnn_resnet50_fpn maskrcnn_resnet50_fpn_v2 "
    "keypointrcnn_resnet50_fpn"
)


class _Detector(torch.nn.Module):
    """A detector of one image, whose results are boxes, scores, labels, and masks or keypoints if it has these."""

    def __init__(self, detector: torch.nn.Module) -> None:
        super().__init__()
        self.detector = detector

    def forward(self, image: torch.Tensor) -> list[torch.Tensor]:
        (results,) = self.detector([image])
        return [results[k] for k in ("boxes", "scores", "labels", "masks", "keypoints") if k in results]


def detectors(only: str) -> Iterator[tuple[str, Callable[..., tuple[str, str]]]]:
    from torchvision.models import detection

    for name in DETECTORS:

        def action(convert: bool = False, name: str = name) -> tuple[str, str]:
            torch.manual_seed(0)
            options: dict[str, Any] = {"weights": None, "weights_backbone": None, "num_classes": 5}
            if not name.startswith("ssd"):
                options |= {"min_size": 96, "max_size": 128}
            if name.startswith(("fcos", "retinanet")):  # scores of random weights are below the usual threshold
                options |= {"score_thresh": 1e-4}
            model = getattr(detection, name)(**options)
            for parameter in model.parameters():
                gain = parameter.std() * parameter[0].numel() ** 0.5 if parameter.dim() > 1 else 1.0
                # heads begin with equal scores, of which ties decide, or with masks whose logits are tens: PyTorch's
                # own float32 is then 1e-4 from its float64
                if parameter.dim() > 1 and (parameter.std() < 0.02 or gain > 4):
                    torch.nn.init.normal_(parameter, std=0.5 / parameter[0].numel() ** 0.5)
            image = torch.rand(3, 96, 128)
            settled(model.backbone, torch.rand(1, 3, 96, 128))
            return compare(_Detector(model).eval(), (image,), {}, convert)

        yield name, action


# ---- operators --------------------------------------------------------------------------------------------------

SAMPLES = int(os.environ.get("SURVEY_SAMPLES", "12"))
"""Samples of each operator, evenly among those of the database."""


class _Traits(TorchDispatchMode):
    """Notes why the calls of a sample are out of the survey's scope."""

    def __init__(self) -> None:
        super().__init__()
        self.reasons: set[str] = set()
        self.sized_by_values = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        results = func(*args, **(kwargs or {}))
        tags = func.tags
        if torch.Tag.nondeterministic_seeded in tags:
            self.reasons.add("random numbers")
        self.sized_by_values |= torch.Tag.dynamic_output_shape in tags or torch.Tag.data_dependent_output in tags
        for value in tensors_of((args, kwargs, results)):
            if value.is_sparse or value.is_nested or value.is_quantized or value.layout is not torch.strided:
                self.reasons.add("sparse, nested or quantized tensors")
        return results


def scope_of(info: Any) -> str | None:
    """Return why an operator has no sample in scope, apart from what its calls show."""
    if torch.float32 not in info.dtypes:
        return "no float32"
    if info.name.startswith("jiterator"):
        return "of CUDA alone"
    if "empty" in info.name or info.name in ("resize_", "resize_as_"):
        return "results that are not defined"
    return None


class _Call(torch.nn.Module):
    """One call of an operator: tensors are inputs, all else is constant."""

    def __init__(self, function: Any, structure: Any, leaves: list[Any]) -> None:
        super().__init__()
        self.function, self.structure, self.leaves = function, structure, leaves

    def forward(self, *tensors: torch.Tensor) -> Any:
        rest = iter(tensors)
        leaves = [next(rest) if leaf is _Call else leaf for leaf in self.leaves]
        args, kwargs = pytree.tree_unflatten(leaves, self.structure)
        return self.function(*args, **kwargs)


def _sample_outcome(function: Any, sample: Any) -> str:
    """Return the outcome of one sample of an operator: "pass", "out of scope: ...", or why it fails.

    Results that are determined but for signs, such as eigenvectors, are compared as PyTorch's own tests do.
    """
    leaves, structure = pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))
    inputs = tuple(v.detach() for v in leaves if isinstance(v, torch.Tensor))
    if any(v.layout is not torch.strided for v in inputs):
        return "out of scope: sparse, nested or quantized tensors"

    def determined(*args: Any, **kwargs: Any) -> Any:
        return sample.output_process_fn_grad(function(*args, **kwargs))

    call = _Call(determined, structure, [_Call if isinstance(v, torch.Tensor) else v for v in leaves])
    try:
        with torch.no_grad(), _Traits() as traits:
            results = tensors_of(call(*copied(inputs)))
    except RuntimeError as error:
        if "out of bounds for storage" not in str(error):
            raise
        return "out of scope: memory outside of the tensor"
    if not results:
        return "out of scope: no tensor among the results"
    if traits.reasons:
        return f"out of scope: {min(traits.reasons)}"
    try:
        outcome, _ = compare(call, inputs, {})
    except Refused as error:
        return f"out of scope: {error}"
    except Exception as error:
        outcome = reason_of(error)
    if outcome != "pass" and traits.sized_by_values:
        return f"out of scope: sizes of results that depend on values: {outcome}"
    return outcome if outcome == "pass" else f"{outcome} at {[tuple(v.shape) for v in inputs]}, {sample.kwargs}"[:320]


def operators(only: str) -> Iterator[tuple[str, Callable[..., tuple[str, str]]]]:
    from torch.testing._internal.common_methods_invocations import op_db

    for info in op_db:
        name = info.name + (f".{info.variant_test_name}" if info.variant_test_name else "")
        if only and only not in name:
            continue

        def action(convert: bool = False, info: Any = info) -> tuple[str, str]:
            if reason := scope_of(info):
                return f"out of scope: {reason}", ""
            torch.manual_seed(0)
            samples = list(info.sample_inputs("cpu", torch.float32))
            step = max(len(samples) / SAMPLES, 1.0)
            chosen = [samples[int((i + 0.5) * step)] for i in range(min(SAMPLES, len(samples)))]
            outcomes = [_sample_outcome(info.op, sample) for sample in chosen]
            scope = [o for o in outcomes if not o.startswith("out of scope")]
            failed = [o for o in scope if o != "pass"]
            if not scope:
                return (outcomes or ["out of scope: no samples"])[0], ""
            return failed[0] if failed else "pass", f"{len(scope) - len(failed)} of {len(scope)} samples"

        yield name, action


FAMILIES: dict[str, Callable[[str], Iterator[tuple[str, Any]]]] = {
    "vision": vision,
    "detection": detectors,
    "timm": timm_models,
    "transformers": transformer_models,
    "operators": operators,
}


def report(rows: list[Row]) -> str:
    """Return the rows as a page: counts, then a table per family."""
    lines = [
        "# Survey of `ow.from_torch`",
        "",
        f"Generated by `tests/frontends/torch_survey.py`, torch {torch.__version__}.",
        "",
    ]
    for family in dict.fromkeys(row.family for row in rows):
        own = [row for row in rows if row.family == family]
        scope = [row for row in own if not row.outcome.startswith("out of scope")]
        passed = sum(row.outcome == "pass" for row in scope)
        lines += [f"## {family}: {passed} of {len(scope)} pass, {len(own) - len(scope)} out of scope", ""]
        lines += ["| | outcome | figures |", "|---|---|---|"]
        lines += [f"| {row.name} | {row.outcome} | {row.figures} |" for row in own]
        lines.append("")
    return "\n".join(lines)


def subprocess_row(family: str, name: str, action: Callable[[], tuple[str, str]], options: Any) -> Row:
    """Return the row of one subject, which a child process computes: it may crash, or exceed its time."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_CPU, (options.seconds, options.seconds + 5))
        row = attempt(family, name, action, options.verbose)
        os.write(writer, json.dumps(row).encode())
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as results:
        content = results.read()
    _, status = os.waitpid(child, 0)
    if content:
        return Row(*json.loads(content))
    ended = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    outcome = f"longer than {options.seconds} s" if ended == signal.SIGXCPU else f"ended by signal {ended}"
    print(f"{family:13} {name:42} {outcome}", flush=True)
    return Row(family, name, outcome)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("families", nargs="+", choices=FAMILIES)
    parser.add_argument("--only", default="")
    parser.add_argument("--convert", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--rows", type=Path, help="file of rows, one a line: a run resumes behind them")
    parser.add_argument("--retry", action="store_true", help="compute the rows that did not pass again")
    parser.add_argument("--seconds", type=int, default=150, help="processor time for each row")
    parser.add_argument("-o", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    compare(torch.nn.ReLU(), (torch.ones(2),), {})  # what an export imports, once for all processes
    rows: dict[tuple[str, str], Row] = {}
    if options.rows and options.rows.exists():
        for line in options.rows.read_text().splitlines():
            row = Row(*json.loads(line))
            rows[row.family, row.name] = row
    for family in options.families:
        for name, action in FAMILIES[family](options.only):
            before = rows.get((family, name))
            done = before and (not options.retry or before.outcome == "pass" or before.outcome.startswith("out of"))
            if options.only in name and not done:
                row = subprocess_row(family, name, functools.partial(action, convert=options.convert), options)
                rows[family, name] = row
                if options.rows:
                    with options.rows.open("a") as file:
                        file.write(json.dumps(row) + "\n")
    if options.o:
        options.o.write_text(report(list(rows.values())))
    for family in options.families:
        own = [r for r in rows.values() if r.family == family and not r.outcome.startswith("out of scope")]
        print(f"{family}: {sum(r.outcome == 'pass' for r in own)} of {len(own)}")


if __name__ == "__main__":
    main()
