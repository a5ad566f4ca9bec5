"""`Optimizer`: the base of all optimizers, from gradients to updated variables.

Lives here: a step, weight decay, accumulation, averages, configuration. Not here: learning rate, step count, slot
variables (state.py), the update rules (rules.py, adam.py ...), clipping, sparse gradients (gradients.py), rates
(schedules.py).

The order of one step: unscale, accumulate and clip the gradients; decay the weights; run `update_step` for each
variable; update the averages; apply constraints; increment the step count. All state is in variables, so a step can be
traced.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypedDict

from ..core import flags, replicas
from ..core.dtypes import DType
from ..eager.tape import GradientTape
from ..eager.variable import Variable
from ..ops import array, dispatch, math
from ..ops.indexed_slices import IndexedSlices
from ..ops.optimizer_steps import update_rows, update_variable
from ..tracing.control import cond
from . import gradients, schedules
from .gradients import scalar, working_dtype
from .schedules import LearningRateSchedule
from .state import OptimizerState

if TYPE_CHECKING:
    from ..ops.tensor import Tensor


class CommonArguments(TypedDict, total=False):
    """The keyword arguments that every optimizer takes; see `Optimizer`."""

    weight_decay: float | None
    clipnorm: float | None
    clipvalue: float | None
    global_clipnorm: float | None
    use_ema: bool
    ema_momentum: float
    ema_overwrite_frequency: int | None
    loss_scale_factor: float | None
    gradient_accumulation_steps: int | None
    name: str | None


class Optimizer(OptimizerState):
    """Base of all optimizers.

    learning_rate: a float (stored in a variable, so that it can be set later), a Variable, a LearningRateSchedule, or a
    function of no arguments. weight_decay: w -= w * weight_decay * learning_rate before each update (decoupled).
    clipnorm: scale each gradient down to this L2 norm; global_clipnorm: scale all gradients down to this joint L2 norm;
    clipvalue: clip elements to +-clipvalue; at most one of the three. use_ema: maintain averages of the variables, a =
    ema_momentum * a + (1 - ema_momentum) * w, and set the variables to them every ema_overwrite_frequency steps (None:
    only by `finalize_variable_values`). loss_scale_factor: divide gradients by it, see `scale_loss`.
    gradient_accumulation_steps: update the variables once every this many steps, by the mean of the gradients.

    To write one: create state in `build` with `add_optimizer_variables`, update a variable in `update_step`, and list
    the constructor's own arguments in `hyperparameters`. raises ValueError for arguments out of range
    """

    hyperparameters: ClassVar[tuple[str, ...]] = ()  # attributes that get_config adds to the common ones
    lazy_mode = False  # sparse rows leave all other rows unchanged, in optimizers that support it

    def __init__(
        self,
        learning_rate: Any,
        weight_decay: float | None = None,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        use_ema: bool = False,
        ema_momentum: float = 0.99,
        ema_overwrite_frequency: int | None = None,
        loss_scale_factor: float | None = None,
        gradient_accumulation_steps: int | None = None,
        name: str | None = None,
        **unknown: Any,
    ) -> None:
        if unknown:
            raise ValueError(f"Argument(s) not recognized: {unknown}")
        if gradient_accumulation_steps and gradient_accumulation_steps < 2:
            raise ValueError(
                "`gradient_accumulation_steps` must be an integer >= 2. Received: "
                f"gradient_accumulation_steps={gradient_accumulation_steps}"
            )
        if use_ema:
            if not 0 <= ema_momentum <= 1:
                raise ValueError(f"`ema_momentum` must be in the range [0, 1]. Received: ema_momentum={ema_momentum}")
            every = ema_overwrite_frequency
            if every and (not isinstance(every, int) or every < 1):
                raise ValueError(
                    "`ema_overwrite_frequency` must be an integer >= 1 or None. Received: "
                    f"ema_overwrite_frequency={every}"
                )
        if sum(limit is not None for limit in (clipnorm, clipvalue, global_clipnorm)) > 1:
            raise ValueError(
                "Only one of `clipnorm`, `clipvalue` and `global_clipnorm` can be set. Received: "
                f"clipnorm={clipnorm}, clipvalue={clipvalue}, global_clipnorm={global_clipnorm}"
            )
        self.weight_decay = weight_decay
        self.clipnorm, self.clipvalue, self.global_clipnorm = clipnorm, clipvalue, global_clipnorm
        self.use_ema, self.ema_momentum = use_ema, ema_momentum
        self.ema_overwrite_frequency = ema_overwrite_frequency
        self.loss_scale_factor = loss_scale_factor
        self.gradient_accumulation_steps = gradient_accumulation_steps
        self._averages: list[Variable] = []
        self._accumulated: list[Variable] = []
        self._undecayed: set[int] = set()
        self._undecayed_names: re.Pattern[str] | None = None
        self._scalars: dict[DType | str, Any] | None = None
        super().__init__(learning_rate, name)

    # ---- state ------------------------------------------------------------------------------------------------------

    def build(self, variables: Sequence[Variable]) -> None:
        """Create the state for `variables`; otherwise the first `apply` does. Extend it to add slots."""
        if self.built:
            return
        self._trainable_variables = list(variables)
        self._index = {v.identity(): i for i, v in enumerate(self._trainable_variables)}
        if self.use_ema:
            self._averages = self.add_optimizer_variables(variables, "average")
        if self.gradient_accumulation_steps:
            self._accumulated = self.add_optimizer_variables(variables, "gradient_accumulator")
        self.built = True
        self._create_slots(variables)

    def _create_slots(self, variables: Sequence[Variable]) -> None:
        """Create the state of a class of this package."""

    # ---- a step -----------------------------------------------------------------------------------------------------

    def minimize(
        self,
        loss: Tensor | Callable[[], Tensor],
        var_list: Iterable[Variable] | Callable[[], Iterable[Variable]],
        tape: GradientTape | None = None,
    ) -> Variable:
        """Compute the gradients of `loss` and apply them. Returns `iterations`.

        loss: a function of no arguments, or a tensor with the tape it was computed under. var_list: variables, or a
        function that returns them. raises ValueError for a tensor without a tape
        """
        return self.apply_gradients(self.compute_gradients(loss, var_list, tape))

    def compute_gradients(
        self,
        loss: Tensor | Callable[[], Tensor],
        var_list: Iterable[Variable] | Callable[[], Iterable[Variable]],
        tape: GradientTape | None = None,
    ) -> list[tuple[Any, Variable]]:
        """Return pairs (gradient, variable). See `minimize`."""
        if not callable(loss) and tape is None:
            raise ValueError(f"`tape` is required when a `Tensor` loss is passed. Received: loss={loss!r}, tape=None.")
        tape = GradientTape() if tape is None else tape
        if callable(loss):
            with tape:
                if not callable(var_list):
                    tape.watch(var_list)
                loss = loss()
        variables = list(var_list() if callable(var_list) else var_list)
        return list(zip(tape.gradient(loss, variables), variables))

    def apply_gradients(self, grads_and_vars: Iterable[tuple[Any, Variable]]) -> Variable:
        """Apply pairs (gradient, variable). Returns the step count."""
        pairs = list(grads_and_vars)
        self.apply([g for g, _ in pairs], [v for _, v in pairs])
        return self._iterations

    def apply(self, grads: Sequence[Any], trainable_variables: Sequence[Variable] | None = None) -> None:
        """Run one step. Without variables: on those it was built with, in their order.

        grads: tensors, IndexedSlices (repeated rows add up), or None, which leaves a variable unchanged. raises
        ValueError for a variable that the optimizer was not built with, and if all gradients are None
        """
        grads = list(grads)
        if not grads:
            return
        if trainable_variables is None:
            variables = self._built_variables(len(grads))
        else:
            variables = list(trainable_variables)
            if not self.built:
                self.build(variables)
            for v in variables:
                if v.identity() not in self._index:
                    raise ValueError(
                        f"Unknown variable: {v}. This optimizer can only be called for the variables it was originally "
                        "built with. When working with a new set of variables, you should recreate a new optimizer "
                        "instance."
                    )
        grads, variables = self._with_gradients(*_overwritten(grads, variables))
        if self.loss_scale_factor is not None:
            factor = self.loss_scale_factor
            grads = [gradients.on_values(lambda x: x / factor, g) for g in grads]
        if self.gradient_accumulation_steps:
            self._accumulate(grads, variables)
        else:
            self._update(grads, variables)
        if self.use_ema:
            self._update_averages()
        for v in variables:
            if v.constraint is not None:
                v.assign(v.constraint(v))
        self._iterations.assign_add(1)

    def update_step(self, gradient: Any, variable: Variable, learning_rate: Any) -> None:
        """Update one variable by its gradient. Every optimizer defines it."""
        raise NotImplementedError(f"{type(self).__name__} has no update_step(gradient, variable, learning_rate)")

    def takes_slices(self) -> bool:
        """Return whether `update_step` takes IndexedSlices (each row once), equivalent to the dense gradient."""
        return False

    def _built_variables(self, count: int) -> list[Variable]:
        if not self.built:
            raise ValueError(
                "When passing `grads` without `variables`, the optimizer must already be built on a list of variables. "
                "Call `optimizer.build(trainable_variables)` first."
            )
        if count != len(self._trainable_variables):
            raise ValueError(
                "When passing `grads` as a list of gradient tensors, the gradients must match `optimizer.variables` "
                f"one-to-one. Received a list of {count} gradients, but the optimizer is tracking "
                f"{len(self._trainable_variables)} trainable variables."
            )
        return self._trainable_variables

    def _with_gradients(self, grads: Sequence[Any], variables: Sequence[Variable]) -> tuple[list[Any], list[Variable]]:
        """Return the pairs without missing gradients; as tensors, dense if `update_step` requires it."""
        if len(grads) != len(variables):
            raise ValueError(f"`grads` and `trainable_variables` differ in length: {len(grads)} and {len(variables)}")
        slices = self.takes_slices() or bool(self.gradient_accumulation_steps)
        prepared = [(gradients.prepare(g, v, slices), v) for g, v in zip(grads, variables) if g is not None]
        missing = [v.name for g, v in zip(grads, variables) if g is None]
        if not prepared:
            raise ValueError(f"No gradients provided for any variable: {missing}.")
        if missing:
            warnings.warn(
                f"Gradients do not exist for variables {missing} when minimizing the loss. If you're using "
                "`model.compile()`, did you forget to provide a `loss` argument?",
                stacklevel=4,
            )
        return [g for g, _ in prepared], [v for _, v in prepared]

    def _update(self, grads: list[Any], variables: list[Variable]) -> None:
        if (replica := replicas.current()) is not None:
            grads = replica.reduce_gradients(grads, variables)
        if self.clipnorm and self.clipnorm > 0:
            grads = [gradients.clip_norm(g, self.clipnorm) for g in grads]
        elif self.global_clipnorm and self.global_clipnorm > 0:
            grads = gradients.clip_global_norm(grads, self.global_clipnorm)
        elif self.clipvalue and self.clipvalue > 0:
            grads = [gradients.clip_value(g, self.clipvalue) for g in grads]
        rate = self.learning_rate
        if isinstance(rate, Variable):
            rate = rate.value()
        for g, v in zip(grads, variables):
            decay = self.decay_of(v)
            if decay is not None and self._decays(v):
                self.update_by("decay", g, v, (), (decay, scalar(rate, v.dtype)))
        self._scalars = {}
        try:
            self.begin_update()
            for g, v in zip(grads, variables):
                self.update_step(g, v, rate)
        finally:
            self._scalars = None

    def begin_update(self) -> None:
        """Prepare a step, before its `update_step`s: compute shared values that are stored in variables."""

    def _per_dtype(
        self, dtype: DType, compute: Callable[[DType, Any], Sequence[Any]], learning_rate: Any
    ) -> Sequence[Any]:
        """Return the values of `compute` for a learning rate, cast to a dtype: once for all variables of a step."""
        cached = {} if self._scalars is None else self._scalars
        if dtype not in cached:
            cached[dtype] = [array.cast(x, dtype) for x in compute(working_dtype(dtype), learning_rate)]
        result: Sequence[Any] = cached[dtype]
        return result

    def update_by(
        self, rule: str, gradient: Any, variable: Variable, state: Sequence[Variable], scalars: Sequence[Any]
    ) -> None:
        """Run one step of a rule of ops/optimizer_rules.py, by a tensor or, equivalently, by sparse rows."""
        dtype, state = variable.dtype, list(state)
        scalars = [scalar(c, dtype) for c in scalars]
        if isinstance(gradient, IndexedSlices):
            update_rows(
                variable,
                state,
                array.cast(gradient.values, dtype),
                gradient.indices,
                scalars,
                rule=rule,
                lazy=self.lazy_mode,
            )
            return
        g = array.cast(gradient, dtype)
        if dispatch.state.trace is not None or flags.check_inputs:
            update_variable(variable, state, g, scalars, rule=rule)
            return
        # A network has many small variables: skip the interpreter, which takes 20 us for such lists.
        op = update_variable
        kernel = op.kernel(op.bind({"rule": rule}))
        dispatch.quietly(kernel, variable, state, g._array, [c._array for c in scalars])

    def _accumulate(self, grads: list[Any], variables: list[Variable]) -> None:
        count: Any = self.gradient_accumulation_steps
        last = (self._iterations + 1) % count == 0
        totals = [self._accumulated[self._get_variable_index(v)] for v in variables]
        for g, total in zip(grads, totals):
            self.assign_add(total, g)

        def update() -> None:
            self._update([self._mean(total, g, count) for total, g in zip(totals, grads)], variables)
            for total in self._accumulated:
                total.assign(array.zeros_like(total))

        cond(last, update, lambda: None)

    def _mean(self, total: Variable, gradient: Any, count: int) -> Tensor | IndexedSlices:
        """Return the mean of the accumulated gradients; in lazy mode, for sparse gradients, its nonzero rows."""
        mean = total.value() / count
        if not (self.lazy_mode and isinstance(gradient, IndexedSlices)):
            return mean
        axes = list(range(1, mean.shape.rank or 1))
        nonzero = math.reduce_any(math.not_equal(mean, array.zeros_like(mean)), axis=axes)
        rows = array.reshape(array.where(nonzero), [-1])
        return IndexedSlices(array.gather(mean, rows), rows, array.shape(mean))

    # ---- assignments ------------------------------------------------------------------------------------------------

    def assign(self, variable: Variable, value: Any) -> None:
        """Set a variable, or some of its rows if `value` is IndexedSlices."""
        self._write(variable, value, Variable.assign, Variable.scatter_update)

    def assign_add(self, variable: Variable, value: Any) -> None:
        """Add to a variable, or to some of its rows."""
        self._write(variable, value, Variable.assign_add, Variable.scatter_add)

    def assign_sub(self, variable: Variable, value: Any) -> None:
        """Subtract from a variable, or from some of its rows."""
        self._write(variable, value, Variable.assign_sub, Variable.scatter_sub)

    def _write(self, variable: Variable, value: Any, dense: Any, sparse: Any) -> None:
        if isinstance(value, IndexedSlices):
            sparse(variable, gradients.on_values(lambda x: array.cast(x, variable.dtype), value))
        else:
            dense(variable, array.cast(value, variable.dtype))

    # ---- weight decay -----------------------------------------------------------------------------------------------

    def exclude_from_weight_decay(
        self, var_list: Iterable[Variable] | None = None, var_names: Iterable[str] | None = None
    ) -> None:
        """Exclude variables from weight decay: those in `var_list`, and those whose name matches one of `var_names`.

        raises ValueError once the optimizer is built
        """
        if self.built:
            raise ValueError("`exclude_from_weight_decay()` can only be configured before the optimizer is built.")
        self._undecayed = {v.identity() for v in var_list or ()}
        names = set(var_names or ())
        self._undecayed_names = re.compile("|".join(sorted(names))) if names else None

    def decay_of(self, variable: Variable) -> float | None:
        """Return the weight decay of a variable; None for none."""
        return self.weight_decay

    def _decays(self, variable: Variable) -> bool:
        if variable.identity() in self._undecayed:
            return False
        return self._undecayed_names is None or self._undecayed_names.search(variable.name) is None

    # ---- averages and scaling ---------------------------------------------------------------------------------------

    def _update_averages(self) -> None:
        step = self.iterations
        after_first = step != 0  # the first average is the variable
        scalars: dict[DType, tuple[Any, Any]] = {}
        for v, average in zip(self._trainable_variables, self._averages):
            if v.dtype not in scalars:
                momentum = array.cast(after_first, v.dtype) * self.ema_momentum
                scalars[v.dtype] = momentum, 1.0 - momentum
            self.update_by("average", v.value(), average, (), scalars[v.dtype])
        if self.ema_overwrite_frequency:
            due = (step + 1) % self.ema_overwrite_frequency == 0
            for v, average in zip(self._trainable_variables, self._averages):
                v.assign(array.where(due, average.value(), v.value()))

    @property
    def averages(self) -> list[tuple[Variable, Variable]]:
        """Pairs of a trained variable and its average, with `use_ema` once the optimizer is built."""
        return list(zip(self._trainable_variables, self._averages))

    def finalize_variable_values(self, var_list: Sequence[Variable]) -> None:
        """Set the variables to their averages, if `use_ema` is on; call it after training."""
        if not self.use_ema:
            return
        if len(var_list) != len(self._averages):
            raise ValueError(
                f"The length of model variables ({len(var_list)}) to override does not match the length of model "
                f"variables stored in the optimizer ({len(self._averages)}). Please check if the optimizer was called "
                "on your model."
            )
        for v, average in zip(var_list, self._averages):
            v.assign(average)

    def scale_loss(self, loss: Tensor) -> Tensor:
        """Return the loss times loss_scale_factor, to differentiate without underflow of small gradients."""
        return loss if self.loss_scale_factor is None else loss * self.loss_scale_factor

    # ---- configuration ----------------------------------------------------------------------------------------------

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments as plain values; a function as learning rate is returned as is."""
        rate = self._learning_rate
        if isinstance(rate, LearningRateSchedule):
            rate = schedules.serialize(rate)
        elif isinstance(rate, Variable):
            rate = float(rate.numpy())
        config = {"name": self.name, "learning_rate": rate}
        for key in CommonArguments.__annotations__:
            config[key] = getattr(self, key)
        for key in self.hyperparameters:
            config[key] = getattr(self, key)
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None) -> Optimizer:
        """Return a new optimizer, without state. custom_objects: user-defined schedule classes by name."""
        config = dict(config)
        if isinstance(config.get("learning_rate"), dict):
            config["learning_rate"] = schedules.deserialize(config["learning_rate"], custom_objects)
        return cls(**config)


def _overwritten(grads: list[Any], variables: list[Variable]) -> tuple[list[Any], list[Variable]]:
    """Assign gradients that are the next values of their variables, scales of float8; return the other pairs."""
    special = [getattr(v, "overwrite_with_gradient", False) for v in variables]
    if not any(special) or len(grads) != len(variables):
        return grads, variables
    for gradient, variable, is_value in zip(grads, variables, special):
        if is_value and gradient is not None:
            variable.assign(gradient)
    kept = [i for i, is_value in enumerate(special) if not is_value]
    return [grads[i] for i in kept], [variables[i] for i in kept]
