"""TFLiteConverter: from traced functions to the bytes of a .tflite file.

Lives here: the public class and the order of the stages.
Not here: the stages: freeze.py, prepare.py, legalize.py (with rules/), optimize.py, export.py.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ... import __version__
from ...core import dtypes, flags
from ...core.errors import InvalidArgumentError
from ...graph import Graph
from ...graph.verify import verify
from ...tracing.concrete import ConcreteFunction
from . import options, runtime
from .errors import Offender, report
from .export import export
from .freeze import freeze
from .legalize import legalize
from .optimize import optimize
from .options import Optimize, TargetSpec
from .prepare import prepare
from .signature import keys_of, signature_of

# In the description and not a metadata entry, which would cost a hundred bytes a file.
MADE_BY = f"Opwright {__version__} Converted."


class TFLiteConverter:
    """Converts traced functions to a .tflite model. Make one with `from_concrete_functions`, `from_saved_model` or
    `from_keras_model`, set what is to be otherwise, call `convert`.

    allow_custom_ops: write operators without a builtin form as custom operators, to be given to the interpreter.
    target_spec: operator sets and types the file may use, and the oldest run time that must read it.
    optimizations, representative_dataset, inference_input_type, inference_output_type: quantisation after training.
    exclude_conversion_metadata: no version of what made it in the file. custom_version_in: where the versions of custom
    operators are kept, "code" (the operator code) or "options" (the official 2.x run time wants 1 in the code).
    experimental_new_converter, experimental_new_quantizer: accepted and without effect.
    """

    __slots__ = ("allow_custom_ops", "custom_version_in", "exclude_conversion_metadata", "experimental_new_converter",
                 "experimental_new_quantizer", "functions", "inference_input_type", "inference_output_type",
                 "optimizations", "representative_dataset", "signature_keys", "target_spec",
                 "trackable_obj")  # fmt: skip

    def __init__(self, functions: Sequence[ConcreteFunction], trackable_obj: Any = None) -> None:
        self.functions = list(functions)
        self.signature_keys: list[str] | None = None
        self.trackable_obj = trackable_obj  # kept alive: its variables are read by `convert`
        self.allow_custom_ops = False
        self.target_spec = TargetSpec()
        self.optimizations: Iterable[Optimize] = []
        self.representative_dataset: Callable[[], Iterable[Any]] | None = None
        self.inference_input_type: Any = dtypes.float32
        self.inference_output_type: Any = dtypes.float32
        self.exclude_conversion_metadata = False
        self.custom_version_in = "code"
        self.experimental_new_converter = self.experimental_new_quantizer = True

    @classmethod
    def from_concrete_functions(cls, funcs: Sequence[Any], trackable_obj: Any = None) -> TFLiteConverter:
        """A converter of these functions, each of which becomes a signature of the model.

        funcs: of `Function.get_concrete_function()`. trackable_obj: what owns their variables.
        raises InvalidArgumentError where they are something else or none
        """
        if isinstance(funcs, ConcreteFunction):
            funcs = [funcs]
        for func in funcs:
            if not isinstance(func, ConcreteFunction):
                raise InvalidArgumentError(
                    what="from_concrete_functions takes a list of ConcreteFunctions", found=type(func).__name__,
                    do="f.get_concrete_function()")  # fmt: skip
        if not funcs:
            raise InvalidArgumentError(what="from_concrete_functions was given no function")
        return cls(funcs, trackable_obj)

    @classmethod
    def from_saved_model(cls, saved_model_dir: Any, signature_keys: Sequence[str] | None = None, tags: Any = None
                         ) -> TFLiteConverter:  # fmt: skip
        """A converter of the signatures of a saved model.

        signature_keys: which of them; all by default. tags: accepted for TensorFlow's sake.
        raises what `saved_model.load` raises; ValueError for a model without signatures, or a key that is none
        """
        from ...saved.loading import load  # with it comes nn, which other conversions do without

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
        made = cls([loaded.signatures[key] for key in keys], loaded)
        made.signature_keys = keys
        return made

    @classmethod
    def from_keras_model(cls, model: Any) -> TFLiteConverter:
        """A converter of what calling a layer or model does, as for inference.

        raises ValueError for a model whose inputs' shapes are not known yet
        """
        from ...saved.exporting import CALL, functions_of

        call = functions_of(model).get(CALL)
        if call is None:
            raise ValueError(f"{model!r} does not know the shapes of its inputs: build it with known ones, such as by "
                             "ow.keras.Input, or call it once")  # fmt: skip
        return cls([call.get_concrete_function()], model)

    def convert(self) -> bytes:
        """The bytes of the .tflite file; the same functions and settings always give the same bytes.

        raises ConverterError naming each operator that has no place in the file, its lines, and the ways out
        """
        options.check(self)
        offenders: list[Offender] = []
        graphs = [self._lower(f, offenders) for f in self.functions]
        if offenders:
            raise report(offenders)
        keys = self.signature_keys or keys_of(self.functions)
        model = export(
            graphs,
            [signature_of(f, g, key) for f, g, key in zip(self.functions, graphs, keys)],
            description="Opwright Converted." if self.exclude_conversion_metadata else MADE_BY,
            custom_version_in=self.custom_version_in,
        )
        if self.target_spec.runtime is not None:
            runtime.check(model, graphs, self.target_spec.runtime)
        return model.to_bytes()

    def _lower(self, function: ConcreteFunction, offenders: list[Offender]) -> Graph:
        """One function through all stages that make its graph one of the lite dialect."""
        graph = prepare(freeze(function))
        graph = legalize(graph, self.allow_custom_ops, offenders)
        graph = optimize(graph)
        if self.target_spec.runtime is not None:
            from .older import say_older  # most conversions are for the newest

            graph = say_older(graph, self.target_spec.runtime)
        if flags.verify:
            verify(graph, after="conversion")
        if "graph" in flags.show:
            print(graph, file=sys.stderr)
        return graph
