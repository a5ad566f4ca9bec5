"""`TFLiteConverter`: traced functions to the bytes of a .tflite file.

Lives here: the public class, the order of the stages, names of signatures; `single_operator`, models of one operator
for `opwright op model` and for checks of an operator.
Not here: the stages (the other modules and packages of lite/convert), the tables of signatures (export.py).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...core import __version__, dtypes, flags, nest
from ...core.errors import InvalidArgumentError
from ...core.lazy_imports import later
from ...core.specs import TensorSpec
from ...graph import Graph
from ...graph.builder import verify
from ...tracing.concrete import DEFAULT_KEY, ConcreteFunction
from ...tracing.function import function
from ..format import Model
from ..ops.definition import LiteOperator
from ..ops.module import ExternalOp, GraphSignature, LiteModule, is_source
from . import options, quantize
from .custom_operators import fuse
from .decompositions import lower_recurrences
from .errors import UnsupportedNode, report
from .export import export
from .freeze import freeze, initialized
from .lists import lower_lists
from .options import OpsSet, Optimize, TargetSpec
from .passes import AllowedOperators, channels_last, legalize, optimize, prepare
from .patterns.fusion import FusionAccount, PatternCount, fuse_patterns
from .patterns.pattern import Pattern
from .quantize import explicit, modes
from .rewriter import without_deferred
from .subgraphs import copy_outputs

if TYPE_CHECKING:
    from ...nn import layer
    from ...saved import loader, signatures
    from . import downlevel
    from .quantize.calibration import RepresentativeDataset
else:  # most conversions need none of these
    layer = later("...nn.layer", __package__)
    loader = later("...saved.loader", __package__)
    signatures = later("...saved.signatures", __package__)
    downlevel = later(".downlevel", __package__)

# In the description and not a metadata entry, which would cost a hundred bytes a file.
MADE_BY = f"Opwright {__version__} Converted."


class TFLiteConverter:
    """Convert traced functions to a .tflite model.

    Create a converter by `from_concrete_functions`, `from_saved_model` or `from_keras_model`, change its attributes,
    and call `convert`.

    allow_custom_ops: write operators without a builtin form as custom operators, which the interpreter must be given.
    patterns: patterns of `lite.pattern`, whose matches become their fused operators; these need no allow_custom_ops.
    patterns_found: the matches of each pattern in the last conversion.
    target_spec: operator sets and types that the file may use, and the oldest run time that must read it.
    optimizations: [Optimize.DEFAULT] quantises the weights, and with representative_dataset the activations;
    Optimize.EXPERIMENTAL_SPARSITY stores weights with many zeros without them.
    representative_dataset: a function that yields samples, or a RepresentativeDataset of one. inference_input_type,
    inference_output_type: dtypes of the model's float32 inputs and outputs; integers only if activations are quantised.
    calibration_custom_ops: kernels of fused operators for calibration, as the custom_ops of an Interpreter; operators
    with a definition need none.
    exclude_conversion_metadata: omit the version of this package from the file. custom_version_in: where the versions
    of custom operators are stored, "code" (the operator code) or "options" (the official 2.x run time wants 1 in the
    code).
    _experimental_disable_per_channel, _experimental_disable_per_channel_quantization_for_dense_layers: use one scale
    for all output channels of weights. _experimental_full_integer_quantization_bias_type: int32 or, the default with
    int16 activations, int64.
    experimental_enable_resource_variables: make variables that a function writes variables of the model; False rejects
    such functions.
    experimental_new_converter, experimental_new_quantizer, experimental_new_dynamic_range_quantizer,
    experimental_lower_to_saved_model, legalize_custom_tensor_list_ops, unfold_batchmatmul,
    _experimental_lower_tensor_list_ops, _experimental_default_to_single_batch_in_tensor_list_ops: accepted without
    effect. There is one converter, which lowers lists to ordinary tensors for every batch size.
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

        funcs: results of `Function.get_concrete_function()`. trackable_obj: the owner of their variables.
        raises InvalidArgumentError for an empty list or other objects
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

        signature_keys: the keys of the signatures; all by default. tags: accepted for compatibility with TensorFlow.
        raises the errors of `saved_model.load`; ValueError for a model without signatures, or an unknown key
        """
        loaded = loader.load(saved_model_dir, tags)
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

        raises InvalidArgumentError for other objects, ValueError for a model whose input shapes are unknown
        """
        if not isinstance(model, layer.Layer):
            raise InvalidArgumentError(
                what="from_keras_model takes a model or layer",
                found=type(model).__name__,
                do="from_concrete_functions, of what ow.function traces",
            )
        call = signatures.functions_of(model).get(signatures.CALL)
        if call is None:
            raise ValueError(
                f"{model!r} does not know the shapes of its inputs: build it with known ones, such as by "
                "ow.keras.Input, or call it once"
            )
        return cls([call.get_concrete_function()], model)

    def convert(self) -> bytes:
        """Return the bytes of the .tflite file; the same functions and settings always yield the same bytes.

        raises ConverterError with each operator that the file cannot hold, its lines, and remedies
        """
        return self.model_of(self.module()).to_bytes()

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the .tflite file, whose bytes `convert` returns, from where the weights are in memory.

        raises as `convert`, and OSError of the file system; the file is complete or not there
        """
        self.model_of(self.module()).write(path)

    def model_of(self, module: LiteModule) -> Model:
        """Return the file of a module as objects; its buffers may be views on variables."""
        return export(module, custom_version_in=self.custom_version_in)

    def module(self) -> LiteModule:
        """Return the graphs of the file, whose nodes have the rules that made them and the lines of their calls.

        raises ConverterError as `convert`
        """
        options.check(self)
        mode = modes.mode_of(self)
        unsupported: list[UnsupportedNode] = []
        account = FusionAccount(self.patterns)
        frozen = freeze(self.functions, self.experimental_enable_resource_variables, views=True)
        stated, bits = explicit.stated(frozen.graphs)
        if bits:
            mode = modes.explicit_mode(mode, bits)
        graphs = [self._lower(graph, unsupported, account) for graph in stated]
        self.patterns_found = account.counts()
        if unsupported:
            raise report(unsupported)
        graphs = initialized(graphs, frozen.variables)
        keys = self.signature_keys or keys_of(self.functions)
        signatures = [signature_of(f, g, key, i) for i, (f, g, key) in enumerate(zip(self.functions, graphs, keys))]
        description = "Opwright Converted." if self.exclude_conversion_metadata else MADE_BY
        if mode.kind != modes.FLOAT or mode.sparse:  # weights are read several times
            graphs = [without_deferred(graph) for graph in graphs]
        module = LiteModule(graphs, signatures, description)
        if mode.kind != modes.FLOAT:
            module = self._quantize(module, mode)
        if mode.sparse:
            module = quantize.sparsify(module, mode)
        if self.target_spec.runtime is not None:
            downlevel.check_runtime(module.all_graphs, self.target_spec.runtime)
        return module

    def _quantize(self, module: LiteModule, mode: modes.Mode) -> LiteModule:
        # The interpreter has builtin and Flex operators; fused operators need no kernel of their own.
        others = (LiteOperator, ExternalOp)
        nodes = [n for graph in module.all_graphs for n in graph.nodes if not is_source(n)]
        own = {n.op.name: n.op for n in nodes if not isinstance(n.op, others)}
        return quantize.quantize(
            module, mode, self.representative_dataset, custom_ops=[own, self.calibration_custom_ops]
        )

    def _allowed(self, account: FusionAccount) -> AllowedOperators:
        sets = set(self.target_spec.supported_ops or ())
        flex = OpsSet.SELECT_TF_OPS in sets
        return AllowedOperators(not flex or len(sets) > 1, self.allow_custom_ops, flex, account.operators)

    def _lower(self, frozen: Graph, unsupported: list[UnsupportedNode], account: FusionAccount) -> Graph:
        """Run all stages that bring one function's graph into the lite dialect."""
        graph = fuse_patterns(fuse(lower_recurrences(frozen), self.allow_custom_ops), account)
        without_lists = lower_lists(graph, unsupported, self.target_spec.runtime)
        if without_lists is not graph:
            graph = prepare(without_lists)
        graph = legalize(channels_last(graph), self._allowed(account), unsupported)
        graph = copy_outputs(optimize(graph))
        if self.target_spec.runtime is not None:
            graph = downlevel.downlevel(graph, self.target_spec.runtime)
        if flags.verify:
            verify(graph, after="conversion")
        if "graph" in flags.show:
            print(graph, file=sys.stderr)
        return graph


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
    for concrete in functions:
        key, count = concrete.name, 0
        while key in keys:
            count += 1
            key = f"{concrete.name}_{count}"
        keys.append(key)
    return keys


Operand = Any  # None, a TensorSpec, an array, or a tuple of the last two


def single_operator(operator: Any, operands: Sequence[Operand], attrs: Mapping[str, Any] | None = None) -> bytes:
    """Return the bytes of a .tflite file with one call of an operator (or its expansion into builtin operators).

    operator: an `@ow.operator`, or one of the catalogue. operands: one for each declared input: a TensorSpec for an
    input of the model, which gets the declared name; an array for a constant in it; None where it is left out; a tuple
    of them where it is repeated. The model's outputs have the declared names.
    raises SignatureError, InvalidArgumentError as a call does; ConverterError for what no file can hold
    """
    named: list[tuple[str, Any]] = []
    for declared, operand in zip(operator.inputs, operands, strict=True):
        if isinstance(operand, tuple):
            named += [(f"{declared.name}_{i}", member) for i, member in enumerate(operand)]
        else:
            named.append((declared.name, operand))
    specs = [TensorSpec(o.shape, o.dtype, name) for name, o in named if isinstance(o, TensorSpec)]

    def call(*arguments: Any) -> object:
        rest = iter(arguments)
        values = iter([next(rest) if isinstance(o, TensorSpec) else o for _, o in named])
        inputs = [tuple(next(values) for _ in o) if isinstance(o, tuple) else next(values) for o in operands]
        taken = {d.name: x for d, x in zip(operator.inputs, inputs) if x is not None}
        result = operator(**taken, **(attrs or {}))
        return list(result) if isinstance(result, tuple) else result

    concrete = function(call, autograph=False, name=operator.name).get_concrete_function(*specs)
    converter = TFLiteConverter.from_concrete_functions([concrete])
    converter.allow_custom_ops = True
    model = Model.read(converter.convert())
    names = _names(operator, len(model.subgraphs[0].outputs))
    (signature,) = model.signature_defs
    for output, name in zip(signature.outputs, names):  # by the converter they have numbers
        output.name = name
    return model.to_bytes()


def _names(operator: Any, count: int) -> list[str]:
    """Return the names of `count` outputs; those of a repeated one are numbered."""
    shown = [o for o in operator.outputs if not o.intermediate]
    spare = count - sum(not o.repeated for o in shown)
    return [n for o in shown for n in ([f"{o.name}_{i}" for i in range(spare)] if o.repeated else [o.name])]
