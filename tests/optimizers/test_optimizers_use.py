"""How optimizers are used: state, learning rate, minimize, configuration, errors, and what a step costs.

Lives here: everything about an optimizer but its numbers.
Not here: numbers (test_optimizers_updates.py, test_optimizers_sparse.py).
"""

from __future__ import annotations

import json
import time

import numpy as np
import pytest

import opwright as ow
from opwright import optimizers
from opwright.optimizers import schedules

ALL = ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "Nadam", "Ftrl", "Lion"]

# ---- state ----------------------------------------------------------------------------------------------------------

SLOTS = [
    (lambda: optimizers.SGD(), []),
    (lambda: optimizers.SGD(0.1, 0.5), ["w_momentum", "b_momentum"]),
    (lambda: optimizers.Adam(), ["w_momentum", "w_velocity", "b_momentum", "b_velocity"]),
    (
        lambda: optimizers.Adam(amsgrad=True),
        ["w_momentum", "w_velocity", "b_momentum", "b_velocity", "w_velocity_hat", "b_velocity_hat"],
    ),
    (lambda: optimizers.Nadam(), ["w_momentum", "w_velocity", "b_momentum", "b_velocity", "u_product"]),
    (lambda: optimizers.Adamax(), ["w_momentum", "w_norm", "b_momentum", "b_norm"]),
    (lambda: optimizers.RMSprop(), ["w_velocity", "b_velocity"]),
    (
        lambda: optimizers.RMSprop(momentum=0.1, centered=True),
        ["w_velocity", "b_velocity", "w_momentum", "b_momentum", "w_average_gradient", "b_average_gradient"],
    ),
    (
        lambda: optimizers.Adadelta(),
        ["w_accumulated_grad", "w_accumulated_delta_var", "b_accumulated_grad", "b_accumulated_delta_var"],
    ),
    (lambda: optimizers.Adagrad(), ["w_accumulator", "b_accumulator"]),
    (lambda: optimizers.Ftrl(), ["w_accumulator", "w_linear", "b_accumulator", "b_linear"]),
    (lambda: optimizers.Lion(), ["w_momentum", "b_momentum"]),
    (
        lambda: optimizers.SGD(use_ema=True, gradient_accumulation_steps=2),
        ["w_average", "b_average", "w_gradient_accumulator", "b_gradient_accumulator"],
    ),
]


@pytest.mark.parametrize(("make", "slots"), SLOTS)
@pytest.mark.parametrize("traced", [False, True], ids=["eager", "traced"])
def test_state_is_made_by_the_first_step(make, slots, traced):
    w, b = ow.Variable(np.ones((2, 3), "f4"), name="w"), ow.Variable(np.float64(1.0), name="b")
    optimizer = make()
    assert not optimizer.built
    names = ["iteration", "learning_rate"]
    assert [v.name for v in optimizer.variables] == [f"{optimizer.name}/{n}:0" for n in names]
    step = ow.function(optimizer.apply) if traced else optimizer.apply
    step([ow.constant(np.ones((2, 3), "f4")), ow.constant(np.float64(1.0))], [w, b])
    assert optimizer.built
    assert [v.name for v in optimizer.variables] == [f"{optimizer.name}/{n}:0" for n in names + slots]
    for v in optimizer.variables[2:]:
        model = w if "/w_" in v.name else b
        if "u_product" not in v.name:
            assert (v.shape, v.dtype) == (model.shape, model.dtype)
        assert not v.trainable


def test_build_makes_it_ahead_and_apply_then_needs_no_variables():
    w = ow.Variable([1.0, 2.0])
    optimizer = optimizers.Adagrad(0.5)
    optimizer.build([w])
    optimizer.build([w])  # a second time changes nothing
    assert len(optimizer.variables) == 3
    np.testing.assert_array_equal(optimizer.variables[2].numpy(), np.float32([0.1, 0.1]))
    optimizer.apply([ow.constant([0.0, 0.0])])
    assert int(optimizer.iterations) == 1


def test_iterations_count_up_and_are_what_apply_gradients_gives():
    w = ow.Variable(1.0)
    optimizer = optimizers.SGD()
    assert optimizer.iterations.dtype.name == "int64"
    for step in range(1, 4):
        assert int(optimizer.apply_gradients([(ow.constant(1.0), w)])) == step
    optimizer.apply([])  # no gradients: nothing happens
    optimizer.apply_gradients([])
    assert int(optimizer.iterations) == 3


def test_an_optimizer_of_ones_own():
    class Signed(optimizers.Optimizer):
        hyperparameters = ("power",)

        def __init__(self, learning_rate=0.5, power=1.0, **common):
            super().__init__(learning_rate, **common)
            self.power = power

        def build(self, variables):
            super().build(variables)
            self.seen = self.add_optimizer_variables(variables, "seen", initializer="ones")

        def update_step(self, gradient, variable, learning_rate):
            seen = self.seen[self._get_variable_index(variable)]
            self.assign_add(seen, gradient)
            self.assign_sub(variable, gradient * learning_rate * self.power)

    w = ow.Variable([1.0, 1.0])
    optimizer = Signed(power=2.0)
    optimizer.apply([ow.constant([1.0, -1.0])], [w])
    np.testing.assert_array_equal(w.numpy(), [0.0, 2.0])
    np.testing.assert_array_equal(optimizer.seen[0].numpy(), [2.0, 0.0])
    again = optimizers.deserialize(optimizers.serialize(optimizer), {"Signed": Signed})
    assert again.get_config() == optimizer.get_config()
    with pytest.raises(NotImplementedError, match="update_step"):
        optimizers.Optimizer(0.1).apply([ow.constant(1.0)], [ow.Variable(1.0)])


def test_weight_decay_excludes_listed_variables():
    w, b, c = (ow.Variable(np.float32(1.0), name=n) for n in ("kernel", "bias", "scale"))
    optimizer = optimizers.SGD(0.5, weight_decay=0.5)
    optimizer.exclude_from_weight_decay(var_list=[c], var_names=["bias"])
    optimizer.apply([ow.constant(0.0)] * 3, [w, b, c])
    assert [float(v) for v in (w, b, c)] == [0.75, 1.0, 1.0]
    with pytest.raises(ValueError, match="before the optimizer is built"):
        optimizer.exclude_from_weight_decay(var_list=[w])


# ---- learning rate --------------------------------------------------------------------------------------------------


def moved(optimizer):
    """How far a step goes for a gradient of -1."""
    w = optimizer._trainable_variables[0] if optimizer.built else ow.Variable(0.0)
    before = float(w)
    optimizer.apply([ow.constant(-1.0)], [w])
    return float(w) - before


def test_learning_rate_as_float_variable_schedule_and_function():
    assert moved(optimizers.SGD(0.25)) == 0.25
    shared = ow.Variable(0.5)
    optimizer = optimizers.SGD(shared)
    assert optimizer.learning_rate is shared
    assert any(v is shared for v in optimizer.variables)
    shared.assign(0.125)
    assert moved(optimizer) == 0.125
    assert moved(optimizers.SGD(schedules.PiecewiseConstantDecay([0], [0.5, 0.25]))) == 0.5
    rates = iter([0.5, 0.25])
    optimizer = optimizers.SGD(lambda: next(rates))
    assert [moved(optimizer), moved(optimizer)] == [0.5, 0.25]


def test_learning_rate_is_settable():
    optimizer = optimizers.SGD(0.5)
    optimizer.learning_rate = 0.25
    assert float(optimizer.learning_rate) == 0.25
    assert moved(optimizer) == 0.25
    assert len(optimizer.variables) == 2
    optimizer.learning_rate = schedules.PiecewiseConstantDecay([1], [0.5, 0.125])
    assert float(optimizer.learning_rate) == 0.5  # one step was made
    assert [v.name for v in optimizer.variables] == [f"{optimizer.name}/iteration:0"]
    with pytest.raises(TypeError, match=r"LearningRateSchedule.*not settable"):
        optimizer.learning_rate = 0.1


@pytest.mark.parametrize("rate", [1, "0.1", None, np.float32(0.1)])
def test_learning_rate_of_another_kind_is_refused(rate):
    with pytest.raises(ValueError, match="`learning_rate` should be float"):
        optimizers.Adam(rate)


# ---- minimize -------------------------------------------------------------------------------------------------------


def test_minimize_a_function_and_a_taped_tensor():
    w = ow.Variable([2.0, -1.0])
    optimizer = optimizers.SGD(0.25)
    optimizer.minimize(lambda: w * w, [w])
    np.testing.assert_array_equal(w.numpy(), [1.0, -0.5])
    optimizer.minimize(lambda: w * w, lambda: [w])
    np.testing.assert_array_equal(w.numpy(), [0.5, -0.25])
    with ow.GradientTape() as tape:
        loss = w * w
    assert int(optimizer.minimize(loss, [w], tape=tape)) == 3
    np.testing.assert_array_equal(w.numpy(), [0.25, -0.125])
    with pytest.raises(ValueError, match="`tape` is required"):
        optimizer.minimize(loss, [w])


def test_minimize_in_a_trace():
    w = ow.Variable(4.0)
    optimizer = optimizers.Adam(0.5)

    @ow.function
    def step():
        optimizer.minimize(lambda: (w - 1.0) * (w - 1.0), [w])
        return w.value()

    for _ in range(60):
        last = step()
    assert abs(float(last) - 1.0) < 0.1
    assert int(optimizer.iterations) == 60


def test_scale_loss():
    assert float(optimizers.SGD(loss_scale_factor=8.0).scale_loss(ow.constant(2.0))) == 16.0
    assert float(optimizers.SGD().scale_loss(ow.constant(2.0))) == 2.0


# ---- configuration --------------------------------------------------------------------------------------------------

CONFIGS = [
    (
        name,
        {
            "learning_rate": 0.25,
            "weight_decay": 0.5,
            "clipnorm": 2.0,
            "use_ema": True,
            "ema_momentum": 0.5,
            "ema_overwrite_frequency": 7,
            "loss_scale_factor": 4.0,
            "gradient_accumulation_steps": 3,
            "name": "mine",
        },
    )
    for name in ALL
] + [
    ("SGD", {"momentum": 0.5, "nesterov": True}),
    ("Adam", {"beta_1": 0.5, "beta_2": 0.75, "epsilon": 1e-3, "amsgrad": True}),
    ("RMSprop", {"rho": 0.5, "momentum": 0.25, "centered": True}),
    ("Lion", {"beta_1": 0.5}),
    ("Ftrl", {"learning_rate_power": -0.25, "l1_regularization_strength": 1.0, "beta": 2.0}),
    ("Adagrad", {"initial_accumulator_value": 0.5}),
    ("Adadelta", {"rho": 0.5}),
]


@pytest.mark.parametrize(("name", "options"), CONFIGS)
def test_configurations_survive_json(name, options):
    optimizer = getattr(optimizers, name)(**options)
    config = optimizer.get_config()
    assert options.items() <= config.items()
    again = type(optimizer).from_config(json.loads(json.dumps(config)))
    assert again.get_config() == config
    assert optimizers.deserialize(json.loads(json.dumps(optimizers.serialize(optimizer)))).get_config() == config


def test_a_schedule_survives_in_the_configuration():
    optimizer = optimizers.Adam(schedules.ExponentialDecay(0.5, 10, 0.9, staircase=True))
    config = json.loads(json.dumps(optimizer.get_config()))
    again = optimizers.Adam.from_config(config)
    assert isinstance(config["learning_rate"], dict)  # the argument is not changed
    assert again.get_config() == optimizer.get_config()
    assert float(again.learning_rate) == 0.5


def test_defaults():
    config = optimizers.Adam(name="adam").get_config()
    assert config.pop("learning_rate") == float(np.float32(0.001))
    assert config == {
        "name": "adam",
        "weight_decay": None,
        "clipnorm": None,
        "clipvalue": None,
        "global_clipnorm": None,
        "use_ema": False,
        "ema_momentum": 0.99,
        "ema_overwrite_frequency": None,
        "loss_scale_factor": None,
        "gradient_accumulation_steps": None,
        "beta_1": 0.9,
        "beta_2": 0.999,
        "epsilon": 1e-07,
        "amsgrad": False,
    }
    assert optimizers.AdamW().weight_decay == 0.004
    assert float(optimizers.SGD().learning_rate) == pytest.approx(0.01)


def test_optimizers_by_name():
    for name in ALL:
        assert type(optimizers.get(name)) is type(optimizers.get(name.lower())) is getattr(optimizers, name)
    mine = optimizers.SGD()
    assert optimizers.get(mine) is mine
    assert optimizers.get(None) is None
    assert optimizers.get({"class_name": "SGD", "config": {"momentum": 0.5}}).momentum == 0.5
    with pytest.raises(ValueError, match=r"Unknown optimizer 'nonsense'; known are SGD, Adam"):
        optimizers.get("nonsense")
    with pytest.raises(ValueError, match="Could not interpret"):
        optimizers.get(3)


def test_names_are_numbered():
    first, second = optimizers.Adam(), optimizers.Adam()
    assert first.name != second.name
    assert first.name.startswith("adam")
    assert optimizers.AdamW().name.startswith("adam_w")


# ---- errors ---------------------------------------------------------------------------------------------------------

BAD = [
    (lambda: optimizers.SGD(momentum=1.5), "`momentum` must be a float between"),
    (lambda: optimizers.SGD(momentum=-0.1), "`momentum` must be a float between"),
    (lambda: optimizers.SGD(clipnorm=1.0, clipvalue=1.0), "Only one of"),
    (lambda: optimizers.SGD(clipnorm=1.0, global_clipnorm=1.0), "Only one of"),
    (lambda: optimizers.SGD(use_ema=True, ema_momentum=1.5), "ema_momentum=1.5"),
    (lambda: optimizers.SGD(use_ema=True, ema_overwrite_frequency=-1), "ema_overwrite_frequency=-1"),
    (lambda: optimizers.SGD(use_ema=True, ema_overwrite_frequency=2.5), "ema_overwrite_frequency=2.5"),
    (lambda: optimizers.SGD(gradient_accumulation_steps=1), "gradient_accumulation_steps=1"),
    (lambda: optimizers.SGD(decay=0.1), "not recognized.*decay"),
    (lambda: optimizers.AdamW(weight_decay=None), "`weight_decay` must be a float"),
    (lambda: optimizers.Lion(beta_1=0.0), "beta_1=0.0"),
    (lambda: optimizers.Lion(beta_1=1.5), "beta_1=1.5"),
    (lambda: optimizers.Ftrl(learning_rate_power=0.5), "learning_rate_power=0.5"),
    (lambda: optimizers.Ftrl(initial_accumulator_value=-1.0), "initial_accumulator_value=-1.0"),
    (lambda: optimizers.Ftrl(l1_regularization_strength=-1.0), "l1_regularization_strength=-1.0"),
    (lambda: optimizers.Ftrl(l2_regularization_strength=-1.0), "l2_regularization_strength=-1.0"),
    (lambda: optimizers.Ftrl(l2_shrinkage_regularization_strength=-1.0), "l2_shrinkage_regularization_strength=-1.0"),
]


@pytest.mark.parametrize(("make", "says"), BAD)
def test_wrong_arguments_are_refused(make, says):
    with pytest.raises(ValueError, match=says):
        make()


@pytest.mark.parametrize("name", ALL)
def test_an_unknown_variable_is_refused(name):
    w, x = ow.Variable(1.0), ow.Variable(2.0, name="stranger")
    optimizer = getattr(optimizers, name)()
    optimizer.apply([ow.constant(1.0)], [w])
    with pytest.raises(ValueError, match=r"Unknown variable: .*stranger.*originally built with"):
        optimizer.apply([ow.constant(1.0)], [x])


def test_gradients_that_do_not_fit_are_refused():
    w, b = ow.Variable([1.0, 2.0], name="w"), ow.Variable(3.0, name="b")
    with pytest.raises(ValueError, match="must already be built"):
        optimizers.SGD().apply([ow.constant(1.0)])
    optimizer = optimizers.SGD(1.0)
    optimizer.build([w, b])
    with pytest.raises(ValueError, match="a list of 1 gradients, but the optimizer is tracking 2"):
        optimizer.apply([ow.constant(1.0)])
    with pytest.raises(ValueError, match=r"No gradients provided for any variable: \['w:0', 'b:0'\]"):
        optimizer.apply([None, None], [w, b])
    with pytest.raises(ValueError, match="differ in length: 1 and 2"):
        optimizer.apply([ow.constant(1.0)], [w, b])
    with pytest.warns(UserWarning, match=r"Gradients do not exist for variables \['w:0'\]"):
        optimizer.apply([None, ow.constant(1.0)], [w, b])
    np.testing.assert_array_equal(w.numpy(), [1.0, 2.0])
    assert float(b) == 2.0
    ema = optimizers.SGD(use_ema=True)
    ema.build([w, b])
    with pytest.raises(ValueError, match=r"model variables \(1\) to override"):
        ema.finalize_variable_values([w])


# ---- cost -----------------------------------------------------------------------------------------------------------


def test_a_thousand_scalar_adam_steps_take_well_under_a_second():
    w, g = ow.Variable(1.0), ow.constant(0.5)
    optimizer = optimizers.Adam()
    optimizer.apply([g], [w])
    best = float("inf")
    for _ in range(3):
        begin = time.perf_counter()
        for _ in range(1000):
            optimizer.apply([g], [w])
        best = min(best, time.perf_counter() - begin)
    assert best < 1.0
