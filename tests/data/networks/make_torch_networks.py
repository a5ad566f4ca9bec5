"""Makes the files of the corpus of networks that come from PyTorch, by litert-torch and ai-edge-quantizer.

    python tests/data/networks/make_torch_networks.py         where these are installed; see make_networks.py

Lives here: the networks, as floats and with the quantiser's recipes: torch_NAME_RECIPE.tflite beside this file.
Not here: the official interpreter's answers (answer_networks.py).
"""

import pathlib
import tempfile

import litert_torch
import numpy as np
import torch
import torch.nn.functional as F
from ai_edge_litert.interpreter import Interpreter
from ai_edge_quantizer import quantizer
from litert_torch.hlfb import StableHLOCompositeBuilder
from torch import nn

HERE = pathlib.Path(__file__).parent


class Function(nn.Module):
    """A function as a module."""

    def __init__(self, run):
        super().__init__()
        self.run = run

    def forward(self, *x):
        return self.run(*x)


class Norm(nn.Module):
    """A norm with a composite of its own name."""

    def __init__(self, n):
        super().__init__()
        self.w = nn.Parameter(torch.rand(n) + 0.5)

    def forward(self, x):
        mark = StableHLOCompositeBuilder(name="odml.rms_norm", attr={"epsilon": 1e-6})
        x, w = mark.mark_inputs(x, self.w)
        return mark.mark_outputs(x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w)


class Block(nn.Module):
    """A block of a model of language: embedding, norm, attention with a causal mask, gated perceptron, logits."""

    def __init__(self):
        super().__init__()
        self.table, self.norm, self.out = nn.Embedding(40, 64), Norm(64), nn.Linear(64, 40, bias=False)
        self.qkv, self.up, self.down = nn.Linear(64, 192), nn.Linear(64, 128, bias=False), nn.Linear(64, 64, bias=False)

    def forward(self, ids):
        x = self.table(ids)
        q, k, v = (t.view(1, -1, 4, 16).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1))
        x = x + F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        gate, up = self.up(self.norm(x)).chunk(2, -1)
        return self.out(self.norm(x + self.down(F.silu(gate) * up)))


def activations(x):
    functions = (
        F.gelu,
        lambda t: F.gelu(t, approximate="tanh"),
        F.elu,
        F.selu,
        F.softsign,
        F.logsigmoid,
        F.hardtanh,
        F.relu6,
        torch.erf,
        torch.atan,
        F.mish,
        torch.sinh,
        torch.expm1,
        torch.sign,
        torch.round,
        torch.trunc,
        F.hardshrink,
        F.tanhshrink,
        lambda t: torch.where(t > 0, t, t * 0.1),
        torch.isnan,
        torch.rsqrt,
        lambda t: torch.atan2(t, t + 1),
        lambda t: torch.fmod(t, 0.3),
        lambda t: torch.remainder(t, 0.3),
    )
    return tuple(f(x) for f in functions)


def sampled(x, at):
    return (
        F.grid_sample(x, at.tanh(), align_corners=False),
        F.pixel_shuffle(x, 2),
        F.adaptive_avg_pool2d(x, (3, 4)),
        F.unfold(x, 3, stride=2),
        F.max_pool2d(x, 2, ceil_mode=True),
        F.log_softmax(x, 3),
        F.normalize(x, dim=1),
        F.interpolate(x, scale_factor=2, mode="bilinear"),
        F.interpolate(x, scale_factor=2, mode="bicubic"),
    )


def images():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1, bias=False),
        nn.InstanceNorm2d(8, affine=True),
        nn.LeakyReLU(0.1),
        nn.Conv2d(8, 8, 3, groups=8, dilation=2, padding=2),
        nn.Hardswish(),
        nn.Conv2d(8, 16, 1, groups=4),
        nn.PReLU(16),
        nn.AvgPool2d(3, 2, 1, count_include_pad=False),
        nn.Flatten(),
        nn.LayerNorm(256),
        nn.Linear(256, 8),
        nn.Mish(),
    )


def sound():
    return nn.Sequential(
        nn.Conv1d(2, 8, 5, 2, 2),
        nn.BatchNorm1d(8),
        nn.ReLU(),
        nn.Conv1d(8, 8, 3, dilation=4, padding=4, groups=2),
        nn.MaxPool1d(2),
        nn.ConvTranspose1d(8, 4, 4, 2, 1),
        nn.AvgPool1d(2),
        nn.Upsample(scale_factor=2),
    )


def classifier():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.GELU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 4),
    )


def weights(bits, grain="CHANNELWISE", integers=True, **more):
    """A recipe for weights alone, of which products are made with integers or with what they stand for."""
    tensor = {"num_bits": bits, "symmetric": True, "granularity": grain, "dtype": "INT"} | more
    return {
        "weight_tensor_config": tensor,
        "compute_precision": "INTEGER" if integers else "FLOAT",
        "explicit_dequantize": not integers,
    }


def static(activations, bits, grain="CHANNELWISE"):
    """A recipe for activations and weights."""
    tensor = {"num_bits": activations, "symmetric": activations == 16, "granularity": "TENSORWISE", "dtype": "INT"}
    return weights(bits, grain) | {"activation_tensor_config": tensor}


RECIPES = {
    "dynamic8": weights(8),
    "dynamic4": weights(4),
    "blocks4": weights(4, "BLOCKWISE_32"),
    "only8": weights(8, integers=False),
    "only4": weights(4, integers=False),
    "half": weights(16, integers=False, dtype="FLOAT"),
    "int8": static(8, 8),
    "int16x8": static(16, 8),
    "int8x4": static(8, 4),
    "int8_tensors": static(8, 8, "TENSORWISE"),
}
NETWORKS = {  # name: what makes it, its inputs, recipes
    "classifier": (classifier, [torch.randn(1, 3, 8, 8)], ["float", *(r for r in RECIPES if r != "blocks4")]),
    "language": (Block, [torch.randint(0, 40, (1, 6))], ["dynamic8", "blocks4"]),
    "images": (images, [torch.randn(2, 3, 16, 16)], ["float", "dynamic8"]),
    "sound": (sound, [torch.randn(1, 2, 40)], ["float", "int16x8"]),
    "activations": (lambda: Function(activations), [torch.rand(1, 3, 5) + 0.2], ["float"]),
    "sampled": (lambda: Function(sampled), [torch.randn(1, 4, 10, 10), torch.randn(1, 6, 6, 2)], ["float"]),
    "gru": (lambda: nn.GRU(6, 8, batch_first=True), [torch.randn(1, 4, 6)], ["float"]),
}


def quantized(path, recipe):
    """The bytes of a float file after the quantiser."""
    config = {"skip_checks": False, "min_weight_elements": 0} | recipe
    half = config["weight_tensor_config"]["dtype"] == "FLOAT"
    if half:
        config["weight_tensor_config"] = {"num_bits": 16, "dtype": "FLOAT"}
    result = quantizer.Quantizer(str(path))
    result.load_quantization_recipe(
        [
            {
                "regex": ".*",
                "operation": "*",
                "op_config": config,
                "algorithm_key": "float_casting" if half else "min_max_uniform_quantize",
            }
        ]
    )
    seen = None
    if result.need_calibration:
        rng = np.random.default_rng(0)
        runner = Interpreter(str(path)).get_signature_runner()
        details = runner.get_input_details()
        draw = lambda: {k: rng.standard_normal(d["shape"]).astype(d["dtype"]) for k, d in details.items()}  # noqa: E731
        seen = result.calibrate({"serving_default": [draw() for _ in range(3)]})
    return result.quantize(seen).quantized_model


def main():
    """Make every file."""
    for name, (build, inputs, recipes) in NETWORKS.items():
        torch.manual_seed(0)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "float.tflite"
            litert_torch.convert(build().eval(), tuple(inputs)).export(str(path))
            for recipe in recipes:
                content = path.read_bytes() if recipe == "float" else quantized(path, RECIPES[recipe])
                (HERE / f"torch_{name}_{recipe}.tflite").write_bytes(content)
                print(f"torch_{name}_{recipe}", len(content), flush=True)


if __name__ == "__main__":
    main()
