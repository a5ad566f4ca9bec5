"""`TFLiteConverter`: traced functions to the bytes of a .tflite file.

Lives here: the public class, the order of the stages, names of signatures.
Not here: the stages (the other modules and packages of lite/convert), the tables of signatures (export.py).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...core import dtypes, flags, nest
from ...core.errors import InvalidArgumentError
from ...core.version import __version__
from ...graph import Graph
from ...graph.verify import verify
from ...tracing.concrete import ConcreteFunction
from ..ops.definition import LiteOperator
from ..ops.module import ExternalOp, GraphSignature, LiteModule, is_source
from . import options
from .custom_operators import fuse
from .errors import UnsupportedNode, report
from .export import export
from .freeze import freeze, initialized
from .lists import lower_lists
from .options import OpsSet, Optimize, TargetSpec
from .passes import AllowedOperators, legalize, optimize, prepare
from .patterns.fusion import FusionAccount, PatternCount, fuse_patterns
from .patterns.pattern import Pattern
from .quantize import modes
from .quantize.dataset import RepresentativeDataset
from .subgraph_outputs import copy_outputs

# In the description and not a metadata entry, which would cost a hundred bytes a file.
MADE_BY = f"Opwright {__version__} Converted."


class TFLiteConverter:
    """Converts traced functions to a .tflite model. Make one with `from_concrete_functions`, `from_saved_model` or
    `from_keras_model`, set what is to be otherwise, call `convert`.

    allow_custom_ops: write operators without a builtin form as custom operators, to be given to the interpreter.
    patterns: of `lite.pattern`: what is found of them becomes their fused operators, which need no allow_custom_ops.
    patterns_found: what the last conversion made of each.
    target_spec: operator sets and types the file may use, and the oldest run time that must read it.
    optimizations: [Optimize.DEFAULT] quantises: weights alone, or with representative_dataset activations, too;
    Optimize.EXPERIMENTAL_SPARSITY stores weights of many zeros without them.
    representative_dataset: a function that yields samples, or a RepresentativeDataset of one. inference_input_type,
    inference_output_type: of the model's inputs and outputs that are float32; integers only where activations are.
    calibration_custom_ops: kernels of fused operators, for running over representative data, as an Interpreter's
    custom_ops; operators that have a definition need none.
    exclude_conversion_metadata: no version of what made it in the file. custom_version_in: where the versions of custom
    operators are kept, "code" (the operator code) or "options" (the official 2.x run time wants 1 in the code).
    _experimental_disable_per_channel, _experimental_disable_per_channel_quantization_for_dense_layers: one scale for
    all output channels of weights. _experimental_full_integer_quantization_bias_type: int32 or, with int16 activations
    and there by default, int64.
    experimental_enable_resource_variables: variables that a function writes are variables of the model, too; False
    refuses such functions.
    experimental_new_converter, experimental_new_quantizer, experimental_new_dynamic_range_quantizer,
    experimental_lower_to_saved_model, legalize_custom_tensor_list_ops, unfold_batchmatmul,
    _experimental_lower_tensor_list_ops, _experimental_default_to_single_batch_in_tensor_list_ops: accepted and without
    effect. There is one converter, which makes ordinary tensors of lists, whatever the batch.
    """

    __slots__ = (
        "_experimental_disable_per_channel",
        "_experimental_disable_per_channel_quantization_for_dense_layers",
        "_experimental_full_integer_quantization_bias_type",
        "allow_custom_ops",
        "calibration_custom_ops",
        "custom_version_in",
        "exclude_conversion_metadata",
        "experimental_enable_resource_variables",
        "functions",
        "inference_input_type",
        "inference_output_type",
        "optimizations",
        "patterns",
        "patterns_found",
        "representative_dataset",
        "signature_keys",
        "target_spec",
        "trackable_obj",
        *options.WITHOUT_EFFECT,
    )

    def __init__(self, functions: Sequence[ConcreteFunction], trackable_obj: Any = None) -> None:
        self.functions = list(functions)
        self.signature_keys: list[str] | None = None
        self.trackable_obj = trackable_obj  # kept alive: its variables are read by `convert`
        self.allow_custom_ops = False
        self.patterns: Sequence[Pattern] = ()
        self.patterns_found: list[PatternCount] = []
        self.target_spec = TargetSpec()
        self.optimizations: Iterable[Optimize] = []
        self.representative_dataset: RepresentativeDataset | Callable[[], Iterable[Any]] | None = None
        self.calibration_custom_ops: Any = ()
        self.inference_input_type: Any = dtypes.float32
        self.inference_output_type: Any = dtypes.float32
        self.exclude_conversion_metadata = False
        self.custom_version_in = "code"
        self.experimental_enable_resource_variables = True
        for name, value in options.WITHOUT_EFFECT.items():
            setattr(self, name, value)
        self._experimental_disable_per_channel = False
        self._experimental_disable_per_channel_quantization_for_dense_layers = False
        self._experimental_full_integer_quantization_bias_type: Any = None

    @classmethod
    def from_concrete_functions(cls, funcs: Sequence[Any], trackable_obj: Any = None) -> TFLiteConverter:
        """Return a converter of functions, each of which becomes a signature of the model.

        funcs: of `Function.get_concrete_function()`. trackable_obj: what owns their variables.
        raises InvalidArgumentError where they are something else or none
        """
        if isinstance(funcs, ConcreteFunction):
            funcs = [funcs]
        for func in funcs:
            if not isinstance(func, ConcreteFunction):
                raise InvalidArgumentError(
                    what="from_concrete_functions takes a list of ConcreteFunctions",
                    found=type(func).__name__,
                    do="f.get_concrete_function()",
                )
        if not funcs:
            raise InvalidArgumentError(what="from_concrete_functions was given no function")
        return cls(funcs, trackable_obj)

    @classmethod
    def from_saved_model(
        cls, saved_model_dir: Any, signature_keys: Sequence[str] | None = None, tags: Any = None
    ) -> TFLiteConverter:
        """Return a converter of the signatures of a saved model.

        signature_keys: which of them; all by default. tags: accepted for TensorFlow's sake.
        raises what `saved_model.load` raises; ValueError for a model without signatures, or a key that is none
        """
        from ...saved.loader import load  # with it comes nn, which other conversions do without

        loaded = load(saved_model_dir, tags)
        keys = list(loaded.signatures) if not signature_keys else list(signature_keys)
        if not keys:
            raise ValueError(
                f"Only support at least one signature key: {saved_model_dir} was saved without signatures. Save it "
                "with signatures=..., or convert its functions by from_concrete_functions"
            )
        for key in keys:
            if key not in loaded.signatures:
                valid = ",".join(loaded.signatures)
                raise ValueError(f"Invalid signature key '{key}' found. Valid keys are '{valid}'.")
        converter = cls([loaded.signatures[key] for key in keys], loaded)
        converter.signature_keys = keys
        return converter

    @classmethod
    def from_keras_model(cls, model: Any) -> TFLiteConverter:
        """Return a converter of the call of a layer or model, in inference mode.

        raises ValueError for what is neither, and for a model whose inputs' shapes are not known yet
        """
        from ...nn.layer import Layer
        from ...saved.signatures import CALL, functions_of

        if not isinstance(model, Layer):
            raise InvalidArgumentError(
                what="from_keras_model takes a model or layer",
                found=type(model).__name__,
                do="from_concrete_functions, of what ow.function traces",
            )
        call = functions_of(model).get(CALL)
        if call is None:
            raise ValueError(
                f"{model!r} does not know the shapes of its inputs: build it with known ones, such as by "
                "ow.keras.Input, or call it once"
            )
        return cls([call.get_concrete_function()], model)

    def convert(self) -> bytes:
        """Return the bytes of the .tflite file; the same functions and settings always yield the same bytes.

        raises ConverterError naming each operator that has no place in the file, its lines, and the ways out
        """
        options.check(self)
        mode = modes.mode_of(self)
        unsupported: list[UnsupportedNode] = []
        account = FusionAccount(self.patterns)
        frozen = freeze(self.functions, self.experimental_enable_resource_variables)
        graphs = [self._lower(graph, unsupported, account) for graph in frozen.graphs]
        self.patterns_found = account.found()
        if unsupported:
            raise report(unsupported)
        graphs = initialized(graphs, frozen.variables)
        keys = self.signature_keys or keys_of(self.functions)
        signatures = [signature_of(f, g, key, i) for i, (f, g, key) in enumerate(zip(self.functions, graphs, keys))]
        description = "Opwright Converted." if self.exclude_conversion_metadata else MADE_BY
        module = LiteModule(graphs, signatures, description)
        if mode.kind != modes.FLOAT:
            module = self._quantize(module, mode)
        if mode.sparse:
            from .quantize import sparsify

            module = sparsify(module, mode)
        if self.target_spec.runtime is not None:
            from .downlevel import check_runtime

            check_runtime(module.all_graphs, self.target_spec.runtime)
        return export(module, custom_version_in=self.custom_version_in).to_bytes()

    def _quantize(self, module: LiteModule, mode: modes.Mode) -> LiteModule:
        from .quantize import quantize  # most conversions do without

        others = (
            LiteOperator,
            ExternalOp,
        )  # the interpreter has builtin and Flex operators; fused ones need no kernel of their own
        nodes = [n for graph in module.all_graphs for n in graph.nodes if not is_source(n)]
        own = {n.op.name: n.op for n in nodes if not isinstance(n.op, others)}
        return quantize(module, mode, self.representative_dataset, custom_ops=[own, self.calibration_custom_ops])

    def _allowed(self, account: FusionAccount) -> AllowedOperators:
        sets = set(self.target_spec.supported_ops or ())
        flex = OpsSet.SELECT_TF_OPS in sets
        return AllowedOperators(not flex or len(sets) > 1, self.allow_custom_ops, flex, account.operators)

    def _lower(self, frozen: Graph, unsupported: list[UnsupportedNode], account: FusionAccount) -> Graph:
        """Run all stages that bring one function's graph into the lite dialect."""
        graph = fuse_patterns(fuse(frozen, self.allow_custom_ops), account)
        without_lists = lower_lists(graph, unsupported, self.target_spec.runtime)
        if without_lists is not graph:
            graph = prepare(without_lists)
        graph = legalize(graph, self._allowed(account), unsupported)
        graph = copy_outputs(optimize(graph))
        if self.target_spec.runtime is not None:
            from .downlevel import downlevel  # most conversions are for the newest

            graph = downlevel(graph, self.target_spec.runtime)
        if flags.verify:
            verify(graph, after="conversion")
        if "graph" in flags.show:
            print(graph, file=sys.stderr)
        return graph


DEFAULT_KEY = "serving_default"


def signature_of(concrete: Any, graph: Graph, key: str, number: int) -> GraphSignature:
    """Return the signature of a function whose graph has that number in the module.

    Inputs go by the names of the function's parameters; results by their keys where it returns a dict, else output_0,
    output_1 and so on.
    """
    structure = concrete.structured_outputs
    names = [f"output_{i}" for i in range(len(graph.outputs))]
    if isinstance(structure, dict) and all(isinstance(k, str) for k in structure):
        keys = [str(path[0]) for path, leaf in nest.flatten_with_paths(structure) if leaf is not None]
        if len(keys) == len(names) == len(set(keys)):
            names = keys
    inputs = {value.name: i for i, value in enumerate(graph.inputs)}
    return GraphSignature(key, inputs, {name: i for i, name in enumerate(names)}, number)


def keys_of(functions: list[Any]) -> list[str]:
    """Return the signature key of each function: the default one for a single function, else unique names."""
    if len(functions) == 1:
        return [DEFAULT_KEY]
    keys: list[str] = []
    for function in functions:
        key, count = function.name, 0
        while key in keys:
            count += 1
            key = f"{function.name}_{count}"
        keys.append(key)
    return keys
