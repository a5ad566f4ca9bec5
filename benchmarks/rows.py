"""The table of rows: measurement, target, and the peers that measure the same.

Lives here: names, descriptions and targets.  Not here: the functions of the rows, under the same names, of Opwright
(ours.py, training.py) and of the peers (peers/peer_*.py); networks, which both run in one process (duels.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.peers import restricted
from benchmarks.workloads import WORKLOADS


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table.

    name: the key in code and JSON. what: the description in the table. target: the upper bound, or None. peers: the
    frameworks that measure the same, each in its own process. unit: "s", "B", or "x" for a ratio, whose target is the
    lower bound.
    module: the module that measures the row. Rows of duels measure the official interpreter in the same run; with
    `ahead`, the row must also be faster than it, by the factor `times`. share: the minimum share of the machine's
    limit, where that is the target.
    """

    name: str
    what: str
    target: float | None
    peers: tuple[str, ...] = ()
    unit: str = "s"
    module: str = "benchmarks.ours"
    ahead: bool = False
    share: float | None = None
    times: float = 1.0


@dataclass(frozen=True, slots=True)
class Peer:
    """A framework to compare with. variable: the environment variable with the path of its Python; None: this one."""

    name: str
    module: str
    variable: str | None


PEERS = {
    peer.name: peer
    for peer in (
        Peer("tensorflow", "benchmarks.peers.peer_tensorflow", "OPWRIGHT_PEER_TENSORFLOW"),
        Peer("jax", "benchmarks.peers.peer_jax", "OPWRIGHT_PEER_JAX"),
        Peer("torch", "benchmarks.peers.peer_torch", "OPWRIGHT_PEER_TORCH"),
        Peer("tensorflow_xla", "benchmarks.peers.peer_tensorflow_xla", "OPWRIGHT_PEER_TENSORFLOW"),
        Peer("torch_compile", "benchmarks.peers.peer_torch_compile", "OPWRIGHT_PEER_TORCH"),
        Peer("litert", "benchmarks.peers.peer_litert", None),
    )
}

FRAMEWORKS = ("tensorflow", "jax", "torch")
TRAINING = ("tensorflow", "tensorflow_xla", "jax", "torch", "torch_compile")

INVOKE_MS = {
    "mobilenet_v2": (2.7, 1.1),
    "mobilenet_v3_small": (0.75, 0.6),
    "efficientnet_b0": (6.5, 2.6),
    "resnet50": (28.0, 8.8),
}
"""The targets of a run of float32 and of int8 on one thread."""
RESTRICTED = {("x86-64-v3", "f32"): 1.3, ("x86-64-v3", "int8"): 1.3, ("x86-64-v3-vnni", "int8"): 1.5}
"""The minimum speed relative to the official run time, where both are restricted to a target."""
MEANS = {"f32": (1.3, 1.3), "int8": (1.3, 1.5)}
"""By kind, the minimum of the geometric mean over the networks on this processor's own target without VNNI, with it."""

WORDS = {"x86-64-v3": "AVX2", "x86-64-v3-vnni": "AVX2 with AVX-VNNI"}


def _duels() -> tuple[Row, ...]:
    """The rows of duels.py."""
    module = "benchmarks.duels"
    mean = "geometric mean of the speeds of a run relative to the official run time"
    rows: list[Row] = []
    for kind, targets in MEANS.items():
        rows.append(
            Row(f"networks_{kind}", f"networks {kind}: {mean}", targets[restricted.has_vnni()], (), "x", module)
        )
        rows += [
            Row(
                f"networks_{kind}_{lesser}",
                f"(a) networks {kind}, restricted to {WORDS[lesser]}: {mean}",
                RESTRICTED[lesser, kind],
                unit="x",
                module=module,
            )
            for lesser in restricted.targets()
            if (lesser, kind) in RESTRICTED
        ]
    for network, targets in INVOKE_MS.items():
        for kind, target in zip(("f32", "int8"), targets):
            name, what = f"{network}_{kind}", f"{network} {kind}"

            def row(
                figure: str,
                words: str,
                target: float | None = None,
                unit: str = "s",
                ahead: bool = False,
                name: str = name,
                what: str = what,
            ) -> Row:
                return Row(f"{name}_{figure}", f"{what}, {words}", target, (), unit, "benchmarks.duels", ahead)

            for (lesser, of), times in RESTRICTED.items():
                if of == kind and lesser in restricted.targets():
                    rows.append(
                        Row(
                            f"{name}_{lesser}",
                            f"(a) {what}, restricted to {WORDS[lesser]}",
                            None,
                            module="benchmarks.duels",
                            ahead=True,
                            times=times,
                        )
                    )
            rows += [
                row("invoke", "run", target / 1e3),
                row("own", "run of the file by Opwright's converter"),
                row("threads", "speed of two threads relative to one", 1.9, "x"),
                row("construct", "constructing and allocating an interpreter", ahead=True),
                row("load", "constructing and allocating, first in a process", ahead=True),
                row("start", "constructing and allocating, with the import of the library and NumPy", ahead=True),
                row("memory", "peak memory of loading and two runs, above idle", unit="B", ahead=True),
            ]
    rows += [
        Row("cold_answer", "mobilenet_v2 f32, empty cache: time to the first result", None, module="benchmarks.duels"),
        Row(
            "cold_ready",
            "mobilenet_v2 f32, empty cache: time until everything is compiled and stored",
            2.0,
            module="benchmarks.duels",
        ),
        Row(
            "cold_processor",
            "mobilenet_v2 f32, empty cache: processor time until then, compiler process included",
            1.0,
            module="benchmarks.duels",
        ),
        Row(
            "cold_memory",
            "mobilenet_v2 f32, empty cache: peak memory until then, above the import",
            60e6,
            unit="B",
            module="benchmarks.duels",
        ),
        Row(
            "cold_children",
            "mobilenet_v2 f32, empty cache: peak memory of the compiler process",
            None,
            unit="B",
            module="benchmarks.duels",
        ),
        Row(
            "shipped_answer",
            "mobilenet_v2 f32, empty cache, kernels of a wheel: time to the first result",
            None,
            module="benchmarks.duels",
        ),
        Row(
            "shipped_ready",
            "mobilenet_v2 f32, empty cache, kernels of a wheel: time until everything is planned and stored",
            1.0,
            module="benchmarks.duels",
        ),
        Row(
            "shipped_processor",
            "mobilenet_v2 f32, empty cache, kernels of a wheel: processor time until then",
            1.0,
            module="benchmarks.duels",
        ),
        Row(
            "shipped_other",
            "mobilenet_v2 f32 of width 0.75, 192 x 192, which the wheel is not made from: processor time until then",
            1.0,
            module="benchmarks.duels",
        ),
    ]
    return tuple(rows)


def _training() -> tuple[Row, ...]:
    """The rows of training.py: the compiled step with all peers, and its other modes."""
    module = "benchmarks.training"
    rows = [Row("two_processes", "speed of two independent processes relative to one", None, unit="x", module=module)]
    for name, workload in WORKLOADS.items():
        what, row = f"training step with Adam, {workload.what}", f"train_{name}"
        rows += [
            Row(row, f"{what}: jit_compile=True", None, TRAINING, module=module, ahead=True, times=workload.times),
            Row(f"{row}_function", f"{what}: function, jit_compile open", None, module=module),
            Row(f"{row}_fit", f"{what}: fit", None, module=module),
            Row(f"{row}_eager", f"{what}: eager", None, module=module),
            Row(f"{row}_threads", "speed of that step on two threads relative to one", 1.8, unit="x", module=module),
            Row(f"{row}_memory", f"peak memory of that step: {workload.what}", None, TRAINING, "B", module, ahead=True),
            Row(f"{row}_function_memory", "peak memory of the function", None, unit="B", module=module),
            Row(f"{row}_fit_memory", "peak memory of fit", None, unit="B", module=module),
        ]
        if name in READY:
            compilers = ("tensorflow_xla", "jax", "torch_compile")
            rows += [
                Row(f"{row}_ready", "from the first call of that step to full speed", None, compilers, module=module),
                Row(f"{row}_function_ready", "the same, jit_compile open", None, module=module),
            ]
    return tuple(rows)


READY = tuple(WORKLOADS)
"""Workloads whose time to full speed is measured."""

ROWS = (
    Row("import", "import in a fresh process, less the start of the interpreter", 0.15, FRAMEWORKS),
    Row("import_whole", "import in a fresh process, with the start of the interpreter", None, FRAMEWORKS),
    Row("eager_add", "eager add of two 4x4 float32 tensors", 2.5e-6, FRAMEWORKS),
    Row("scope_add", "op.run: add of two 4x4 float32 variables of a scope", 15e-6),
    Row("scope_graph", "run_graph: ten such adds in sequence on a scope", 200e-6),
    Row("traced_call", "cached call of a traced 4x4 matmul + add + tanh", 5e-6, FRAMEWORKS),
    Row("dispatch", "traced call with 50 traces of other shapes, round-robin", 8e-6, ("tensorflow", "jax")),
    Row("trace", "tracing a function of 60 operators", 5e-3, FRAMEWORKS),
    Row(
        "trace_autograph",
        "tracing the same operators as Python with a loop and calls, by AutoGraph",
        5e-3,
        ("tensorflow",),
    ),
    Row("while_turn", "iteration of a while loop in a graph: compare, count, multiply", None, ("tensorflow", "jax")),
    Row("while_over", "overhead of that iteration over its three kernels", 3e-6),
    Row("while_gradient", "iteration of that loop and of its gradient", None, ("tensorflow",)),
    Row("while_tensor", "iteration of a while loop in a graph: tanh(x @ w) on 32x128", None, ("tensorflow", "jax")),
    Row("branch", "call of a function with a branch, on 16x16", None, ("tensorflow", "jax")),
    Row(
        "array_write",
        "write of 64 numbers to an array of 10,000 in a loop, and their stack",
        None,
        ("tensorflow", "jax"),
    ),
    Row("dataset", "element of range.shuffle.map.batch(32).prefetch, in a loop of a function", None, ("tensorflow",)),
    Row("fit_step", "step of fit: Dense 64-64-10 on 32 rows of 20, Adam, accuracy", None, ("tensorflow",)),
    Row("lstm", "LSTM of 32 units over [16, 50, 16], forward and gradients, in a graph", None, ("tensorflow",)),
    Row("dying_functions", "memory retained after 10,000 functions were traced and deleted", 1e6, unit="B"),
    Row("deep_chain", "x * 0.99 + 0.01, 64 times on 1024x1024 float32, in a graph", None, FRAMEWORKS),
    Row("deep_chain_apart", "that chain without in-place reuse", None),
    Row(
        "deep_memory",
        "peak memory of 64 layers matmul + bias + relu on 1024x1024, above weights and input",
        None,
        ("tensorflow", "torch"),
        "B",
    ),
    Row("deep_memory_apart", "peak memory of those layers without in-place reuse", None, unit="B"),
    Row("deep_gradient", "those layers on 256 rows, forward and backward", None),
    Row("deep_gradient_apart", "those layers, forward and backward, without in-place reuse", None),
    Row(
        "deep_gradient_memory",
        "peak memory of those layers with the gradient of the input, by tape over a function",
        None,
        ("tensorflow", "torch"),
        "B",
    ),
    Row("sequence_sum", "sum of each of 64 sequences of up to 200 rows of 128, with gradient", None, ("tensorflow",)),
    Row("sequence_sum_padded", "sum of the padded batch with a mask, with gradient", None, ("tensorflow",)),
    Row("sequence_max", "maximum of each of those sequences, with gradient", None, ("tensorflow",)),
    Row("sequence_max_padded", "maximum of the padded batch with a mask, with gradient", None, ("tensorflow",)),
    Row("sequence_softmax", "softmax over each sequence of one number per row, with gradient", None),
    Row("sequence_softmax_padded", "softmax over the padded batch with a mask, with gradient", None, ("tensorflow",)),
    Row("sequence_lstm", "LSTM of 128 units over those sequences, with gradients of the weights", None),
    Row(
        "sequence_lstm_padded",
        "LSTM of 128 units over the padded batch with a mask, with gradients of the weights",
        None,
        ("tensorflow",),
    ),
    Row("tape_step", "gradient by tape of 4x4 matmul + add + tanh, eager", None, FRAMEWORKS),
    Row("eager_softmax", "eager softmax of a 4x4 float32 tensor", None, ("torch",)),
    Row("eager_reshape", "eager reshape of that tensor to 2x8", None, ("torch",)),
    Row("eager_argmax", "eager argmax of that tensor along the last axis", None, ("torch",)),
    Row("eager_tanh", "tanh of 2^20 float32, eager", None, ("torch",)),
    Row("eager_gelu", "GELU of 2^20 float32, eager", None, ("torch",)),
    Row("sparse_sgd", "SGD step with 4096 rows of a 1 M x 64 float32 table", 5e-3, ("tensorflow", "torch")),
    Row("sparse_adagrad", "Adagrad step with those rows", 5e-3, ("tensorflow", "torch")),
    Row("sparse_adam_lazy", "Adam step with those rows, lazy_mode", 5e-3, ("torch",)),
    Row("sparse_adam", "Adam step with those rows, all other rows updated by their moments", None, ("tensorflow",)),
    Row("dense_sgd", "SGD step with those rows as a dense gradient", None, ("tensorflow", "torch")),
    Row("dense_adam", "Adam step with those rows as a dense gradient", None, ("tensorflow", "torch")),
    Row("convert", "converting y = atan(x + offset) on 5 floats to .tflite", 20e-3, ("tensorflow",)),
    Row("convert_network", "converting MobileNetV2 (65 operators, 14 MB) to .tflite", 0.5, ("tensorflow",)),
    Row("network_size", "size of the converted MobileNetV2", None, ("tensorflow",), "B"),
    Row("read_first", "reading and verifying 14 MB of .tflite (64 operators), first in a process", 5e-3),
    Row("read_again", "reading and verifying it again", None),
    Row("read_large", "reading and verifying 105 MB of .tflite", 5e-3),
    Row("write_again", "writing the 14 MB again", None),
    Row("interpreter", "constructing an interpreter of that model and allocating (peer: sin model)", 3e-3, ("litert",)),
    Row(
        "resolver",
        "resolver for a network of 5 operators with its kernels imported, first in a process",
        None,
        module="benchmarks.selective",
    ),
    Row("resolver_all", "resolver for all operators with their kernels imported", None, module="benchmarks.selective"),
    Row("resolver_memory", "memory of the resolver for that network", None, unit="B", module="benchmarks.selective"),
    Row(
        "resolver_all_memory", "memory of the resolver for all operators", None, unit="B", module="benchmarks.selective"
    ),
    Row("invoke", "invoke of y = sin(x + offset) on 5 floats", None, ("litert",)),
    Row(
        "litert_node",
        "node of an Opwright operator in the official run time, over an empty callback, 5 floats",
        1e-6,
        module="benchmarks.litert",
    ),
    Row("litert_run", "CompiledModel.run of that node", None, module="benchmarks.litert"),
    Row("jit_call", "cached call of that function with jit_compile=True", 3e-6, ("tensorflow", "jax")),
    Row("jit_chain", "eight operators on 10 M floats with jit_compile=True", None, ("jax",), share=0.8),
    Row(
        "custom_atan_c",
        "Atan in the kernel language on 1 M floats: speed relative to the same function in C",
        0.9,
        unit="x",
        module="benchmarks.customs",
    ),
    Row(
        "custom_atan_libm",
        "Atan in the kernel language on 1 M floats: speed relative to atanf of the C library",
        5.0,
        unit="x",
        module="benchmarks.customs",
    ),
    Row("custom_atan_invoke", "invoke of a model of that operator on 5 floats", 3e-6, module="benchmarks.customs"),
    Row("custom_atan_eager", "eager call of that operator on 5 floats", 3e-6, module="benchmarks.customs"),
    Row(
        "custom_atan_export",
        "time of its exported C relative to the operator",
        None,
        unit="x",
        module="benchmarks.exports",
    ),
    Row(
        "map_one_process",
        "batch inference on one process, 5 ms a batch: throughput over that of a bare loop",
        0.97,
        unit="x",
        module="benchmarks.distribution",
    ),
    Row(
        "map_two_processes",
        "the same on two processes: throughput over that of one",
        1.9,
        unit="x",
        module="benchmarks.distribution",
    ),
    Row(
        "map_two_loops",
        "bare loops in two processes side by side: throughput over that of one, the machine's limit",
        None,
        unit="x",
        module="benchmarks.distribution",
    ),
    Row(
        "map_driver_memory",
        "the same, 100,000 elements of 1 KB: growth of the driver's memory in the second half",
        8e6,
        unit="B",
        module="benchmarks.distribution",
    ),
    *(
        Row(f"library_{name}", what, target, unit=unit, module="benchmarks.libraries")
        for name, what, target, unit in (
            ("keywords_code", "library of the keyword model for a Cortex-M4: object file without weights", 24e3, "B"),
            ("keywords_arena", "the same: arena (TensorFlow Lite Micro: 24,368 bytes)", 24_368, "B"),
            ("arm_code", "library of mobilenet_v2 int8 for ARM with dotprod: object file without weights", 150e3, "B"),
            ("build", "building that library, empty cache", 10.0, "s"),
            ("run", "speed of that library for this machine relative to the interpreter", 1.0, "x"),
            ("start", "first answer of a process that links it, over the second", 2e-3, "s"),
        )
    ),
    Row("native_node", "invoke of a C operator, over its own function", 1e-6, module="benchmarks.natives"),
    Row("native_invoke", "invoke of a model of one C operator on 5 floats", None, module="benchmarks.natives"),
    Row("native_twenty", "invoke of a model of twenty C operators", 3e-6, module="benchmarks.natives"),
    Row(
        "single_invoke",
        "models of one operator: invoke, geometric mean of the speed relative to the official run time",
        1.0,
        unit="x",
        module="benchmarks.single_operators",
    ),
    Row("single_least", "the minimum over these models", 0.5, unit="x", module="benchmarks.single_operators"),
    Row(
        "single_whole",
        "models of one operator: set_tensor, invoke and get_tensor, geometric mean of the relative speed",
        1.0,
        unit="x",
        module="benchmarks.single_operators",
    ),
    Row(
        "single_set", "set_tensor of a model of one operator", 0.35e-6, module="benchmarks.single_operators", ahead=True
    ),
    Row(
        "single_get", "get_tensor of a model of one operator", 0.35e-6, module="benchmarks.single_operators", ahead=True
    ),
    *(
        Row(
            f"language_{kind}_{signature}",
            f"{words} of a language model of 12 layers, 82 M {kind} weights",
            None,
            module="benchmarks.language",
            ahead=True,
            share=share,
        )
        for kind in ("float32", "int8", "int4")
        for signature, words, share in (
            ("decode", "a step", 0.85),
            ("in_place", "a step with bound caches", 0.85),
            ("prefill", "128 tokens", 0.8),
        )
    ),
    *(
        Row(
            f"generative_{kind}_{signature}",
            f"{words} of a model of 135 M {kind} weights by litert-torch",
            None,
            module="benchmarks.generative",
            ahead=True,
        )
        for kind in ("float32", "weights8", "int8", "int4_32")
        for signature, words in (("prefill", "128 tokens"), ("decode", "a step"), ("in_place", "a step, caches bound"))
    ),
    Row("installed_size", "installed size with all run-time dependencies", 300e6, unit="B"),
    *_training(),
    *_duels(),
)
