"""The table of rows: what is measured, the target, and who is asked for the same.

Lives here: names, words and targets.  Not here: our side of a row (ours.py) and the peers' (peers/peer_*.py), where a
row has a function under its name, or has none; both at once for networks from files (duels.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.peers import restricted


@dataclass(frozen=True, slots=True)
class Row:
    """name: in code and JSON; what: in the table; target: at most this, None if only watched; peers: who is asked for
    the same, each in a process of its own; unit: "s", "B", or "x" for a ratio, of which the target is the least.

    module: what measures it. Rows of duels measure the official interpreter in the same run, and beating it is a
    target too where `ahead` says so, by `times` at least. share: the least share of the machine's limit, where that is
    the target.
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
    """variable: names the Python that has this framework; None for our own, where the tests' extras bring it."""

    name: str
    module: str
    variable: str | None


PEERS = {
    peer.name: peer
    for peer in (
        Peer("tensorflow", "benchmarks.peers.peer_tensorflow", "OPWRIGHT_PEER_TENSORFLOW"),
        Peer("jax", "benchmarks.peers.peer_jax", "OPWRIGHT_PEER_JAX"),
        Peer("torch", "benchmarks.peers.peer_torch", "OPWRIGHT_PEER_TORCH"),
        Peer("litert", "benchmarks.peers.peer_litert", None),
    )
}

FRAMEWORKS = ("tensorflow", "jax", "torch")

INVOKE_MS = {
    "mobilenet_v2": (2.7, 1.1),
    "mobilenet_v3_small": (0.75, 0.6),
    "efficientnet_b0": (6.5, 2.6),
    "resnet50": (28.0, 8.8),
}
"""The targets of a run of float32 and of int8 on one thread."""
RESTRICTED = {("x86-64-v3", "f32"): 1.3, ("x86-64-v3", "int8"): 1.3, ("x86-64-v3-vnni", "int8"): 1.5}
"""How many times as long the official run time is to take where both are restricted to a target."""

WORDS = {"x86-64-v3": "AVX2", "x86-64-v3-vnni": "AVX2 with AVX-VNNI"}


def _duels() -> tuple[Row, ...]:
    """The rows of duels.py."""
    rows: list[Row] = []
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
                row("invoke", "a run", target / 1e3),
                row("own", "a run of our converter's file"),
                row("threads", "two threads over one", 1.9, "x"),
                row("construct", "interpreter made and allocated", ahead=True),
                row("load", "the same, first of a process", ahead=True),
                row("start", "the same with the import of the library, NumPy's in it", ahead=True),
                row("memory", "peak over idle of loading and two runs", unit="B", ahead=True),
            ]
    rows += [
        Row(
            "cold_answer",
            "mobilenet_v2 f32, nothing in the cache, to the first result",
            None,
            module="benchmarks.duels",
        ),
        Row("cold_ready", "the same until all of it is compiled and kept", 2.0, module="benchmarks.duels"),
        Row(
            "cold_processor",
            "what the processor has worked by then, the process that compiles included",
            1.0,
            module="benchmarks.duels",
        ),
        Row(
            "cold_memory",
            "peak of memory by then, above what the import took",
            60e6,
            unit="B",
            module="benchmarks.duels",
        ),
        Row("cold_children", "peak of memory of the process that compiles", None, unit="B", module="benchmarks.duels"),
    ]
    return tuple(rows)


ROWS = (
    Row("import", "import in a fresh process, less the bare interpreter's start", 0.15, FRAMEWORKS),
    Row("import_whole", "the same with the interpreter's start", None, FRAMEWORKS),
    Row("eager_add", "eager add of two 4x4 float32 tensors", 2.5e-6, FRAMEWORKS),
    Row("scope_add", "op.run of an add of two 4x4 float32 tensors of a scope", 15e-6),
    Row("scope_graph", "run_graph of ten such adds, one after another, on a scope", 200e-6),
    Row("traced_call", "cached call of a traced 4x4 matmul + add + tanh", 5e-6, FRAMEWORKS),
    Row("dispatch", "the same where 50 traces of other shapes are kept, in turn", 8e-6, ("tensorflow", "jax")),
    Row("trace", "tracing a function of 60 operators", 5e-3, FRAMEWORKS),
    Row("trace_autograph", "the same as Python with a loop and calls, converted by AutoGraph", 5e-3, ("tensorflow",)),
    Row("while_turn", "a turn of a while loop in a graph: compare, count, multiply", None, ("tensorflow", "jax")),
    Row("while_over", "the same, less those three operators' kernels", 3e-6),
    Row("while_gradient", "a turn of that loop and of its gradient", None, ("tensorflow",)),
    Row("dataset", "an element of range.shuffle.map.batch(32).prefetch, in a function's loop", None, ("tensorflow",)),
    Row("fit_step", "a step of fit: Dense 64-64-10 on 32 rows of 20, Adam, accuracy", None, ("tensorflow",)),
    Row("lstm", "LSTM of 32 units over [16, 50, 16], forward and gradients, in a graph", None, ("tensorflow",)),
    Row("dying_functions", "memory kept after 10,000 functions were traced and died", 1e6, unit="B"),
    Row("deep_chain", "x * 0.99 + 0.01, 64 times on 1024x1024 float32, in a graph", None, FRAMEWORKS),
    Row("deep_chain_apart", "the same where no result is written into memory that dies", None),
    Row(
        "deep_memory",
        "peak of 64 layers matmul + bias + relu on 1024x1024, above weights and input",
        None,
        ("tensorflow", "torch"),
        "B",
    ),
    Row("deep_memory_apart", "the same where no result is written into memory that dies", None, unit="B"),
    Row("deep_gradient", "that network on 256 rows, forward and backward", None),
    Row("deep_gradient_apart", "the same where no result is written into memory that dies", None),
    Row(
        "deep_gradient_memory",
        "peak of the network with the gradient of the input, by tape over a function",
        None,
        ("tensorflow", "torch"),
        "B",
    ),
    Row("sequence_sum", "sums of 64 sequences of up to 200 rows of 128, and their gradient", None, ("tensorflow",)),
    Row("sequence_sum_padded", "the same on the padded batch, with a mask", None, ("tensorflow",)),
    Row("sequence_max", "the largest of each, and their gradient", None, ("tensorflow",)),
    Row("sequence_max_padded", "the same on the padded batch, with a mask", None, ("tensorflow",)),
    Row("sequence_softmax", "softmax over each of the same lengths, of one number a row, and the gradient", None),
    Row("sequence_softmax_padded", "the same on the padded batch, with a mask", None, ("tensorflow",)),
    Row("sequence_lstm", "LSTM of 128 units over these sequences, with the gradients of its weights", None),
    Row("sequence_lstm_padded", "the same on the padded batch, with a mask", None, ("tensorflow",)),
    Row("tape_step", "gradient by tape of 4x4 matmul + add + tanh, eager", None, FRAMEWORKS),
    Row("sparse_sgd", "SGD step by 4096 rows of a 1 M x 64 float32 table", 5e-3, ("tensorflow", "torch")),
    Row("sparse_adagrad", "the same by Adagrad", 5e-3, ("tensorflow", "torch")),
    Row("sparse_adam_lazy", "the same by Adam, lazy_mode", 5e-3, ("torch",)),
    Row("sparse_adam", "the same by Adam, all other rows moving on by their moments", None, ("tensorflow",)),
    Row("dense_sgd", "SGD step by those rows made a dense gradient", None, ("tensorflow", "torch")),
    Row("dense_adam", "Adam step by those rows made a dense gradient", None, ("tensorflow", "torch")),
    Row("convert", "converting y = atan(x + offset) on 5 floats to .tflite", 20e-3, ("tensorflow",)),
    Row("convert_network", "converting MobileNetV2 (65 operators, 14 MB) to .tflite", 0.5, ("tensorflow",)),
    Row("network_size", "size of that file", None, ("tensorflow",), "B"),
    Row("read_first", "reading and verifying 14 MB of .tflite (64 operators), first of a process", 5e-3),
    Row("read_again", "the same once more", None),
    Row("read_large", "the same of 105 MB", 5e-3),
    Row("write_again", "its bytes again", None),
    Row("interpreter", "constructing the interpreter on that model, allocating (peer: sin model)", 3e-3, ("litert",)),
    Row(
        "resolver",
        "a resolver for a network of 5 operators, its kernels imported, first of a process",
        None,
        module="benchmarks.selective",
    ),
    Row("resolver_all", "the same of all operators", None, module="benchmarks.selective"),
    Row("resolver_memory", "what a process grows by with the first", None, unit="B", module="benchmarks.selective"),
    Row("resolver_all_memory", "with the second", None, unit="B", module="benchmarks.selective"),
    Row("invoke", "invoke of y = sin(x + offset) on 5 floats", None, ("litert",)),
    Row(
        "litert_node",
        "a node of ours in the official run time, over a callback that does nothing, 5 floats",
        1e-6,
        module="benchmarks.litert",
    ),
    Row("litert_run", "a run of such a node by CompiledModel.run", None, module="benchmarks.litert"),
    Row("jit_call", "traced_call with jit_compile=True", 3e-6, ("tensorflow", "jax")),
    Row("jit_chain", "eight operators on each of 10 M floats with jit_compile=True", None, ("jax",), share=0.8),
    Row(
        "custom_atan_c",
        "Atan in the kernel language on 1 M floats over the same function in C",
        0.9,
        unit="x",
        module="benchmarks.customs",
    ),
    Row("custom_atan_libm", "the same over the C library's atanf", 5.0, unit="x", module="benchmarks.customs"),
    Row("custom_atan_invoke", "invoke of that operator alone on 5 floats", 3e-6, module="benchmarks.customs"),
    Row("custom_atan_eager", "a call of it on 5 floats", 3e-6, module="benchmarks.customs"),
    Row(
        "custom_atan_export",
        "the same by its exported C over the operator itself",
        None,
        unit="x",
        module="benchmarks.exports",
    ),
    Row("native_node", "invoke of a C operator over its own function", 1e-6, module="benchmarks.natives"),
    Row("native_invoke", "invoke of a model that has one C operator, on 5 floats", None, module="benchmarks.natives"),
    Row("native_twenty", "invoke of a model of twenty of them", 3e-6, module="benchmarks.natives"),
    Row(
        "single_invoke",
        "models of one operator: invoke, geometric mean over the official time",
        1.0,
        unit="x",
        module="benchmarks.single_operators",
    ),
    Row("single_least", "the least of them", 0.5, unit="x", module="benchmarks.single_operators"),
    Row(
        "single_whole",
        "the same with values set before and results read after",
        1.0,
        unit="x",
        module="benchmarks.single_operators",
    ),
    Row("single_set", "set_tensor of such a model", 0.35e-6, module="benchmarks.single_operators", ahead=True),
    Row("single_get", "get_tensor of such a model", 0.35e-6, module="benchmarks.single_operators", ahead=True),
    Row("installed_size", "installed size with all run-time dependencies", 300e6, unit="B"),
    *_duels(),
)
