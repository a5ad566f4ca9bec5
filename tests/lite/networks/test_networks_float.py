"""Networks as people write them: the file gives what the network gives, here and in the official interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from networks_all import NETWORKS, inputs_of
from networks_harness import SIZES, content_of, eager, model_of, official, own, run

from opwright.core import nest
from opwright.lite.format import Model, versions
from opwright.lite.format.runtime_requirements import requirements, stored_runtime, unsupported_by
from thorough import sampled

# Operators that the oldest of the run times asked for has no form of, and why they stay.
TOO_NEW = {"activations": "CUMSUM", "volumes": "CONV_3D", "norms": "BROADCAST_TO"}


def _same(content: bytes, name: str) -> None:
    reference = eager(name)
    for interpreter in (own(content), official(content)):
        actual = run(interpreter, inputs_of(name))
        assert len(actual) == len(reference)
        for (y, _), expected in zip(actual, reference):
            assert (y.dtype, y.shape) == (expected.dtype, expected.shape)
            np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5 * max(1.0, np.abs(expected).max(initial=0)))


@pytest.mark.parametrize("name", sampled(NETWORKS, 11))
def test_answers(name: str) -> None:
    _same(content_of(name), name)


@pytest.mark.any_engine
@pytest.mark.parametrize("name", sampled(NETWORKS, 4))
def test_file(name: str) -> None:
    """Verified, of builtins alone, with the oldest run time that its operators ask for, and no larger than official."""
    content = content_of(name)
    model = Model.read(content)
    model.verify()
    assert not any(code.custom_code for code in model.operator_codes)
    assert stored_runtime(model) == max((need.runtime for need in requirements(model)), key=versions.runtime_key)
    assert len(content) <= SIZES.get(name, {}).get("float", len(content))
    assert own(content).get_signature_list() == official(content).get_signature_list()


@pytest.mark.any_engine
@pytest.mark.parametrize("runtime", [pytest.param("2.8", marks=pytest.mark.slow), "2.3"])
@pytest.mark.parametrize("name", sampled(NETWORKS, 16))
def test_older_run_times(name: str, runtime: str) -> None:
    if runtime == "2.3" and name in TOO_NEW:
        with pytest.raises(ValueError, match=f"does not run on run time 2.3[^!]*{TOO_NEW[name]} version"):
            content_of(name, "float", runtime)
        return
    content = content_of(name, "float", runtime)
    assert not unsupported_by(requirements(Model.read(content)), runtime)
    _same(content, name)


@pytest.mark.parametrize(
    "name", sampled(["fully_convolutional_unknown", "mobilenet_v2", "gru_unknown_length", "bilstm_mask"], 4)
)
def test_other_sizes_than_first(name: str) -> None:
    """One interpreter, several sizes: dimensions that were unknown take any."""
    interpreters = own(content_of(name)), official(content_of(name))
    for batch, cut in ((3, 2), (1, 0), (2, 3)):
        x = np.concatenate([inputs_of(name, seed)[0][:1] for seed in range(batch)])
        x = x[:, cut:] if "unknown" in name else x
        reference = [np.asarray(y) for y in nest.flatten(model_of(name)(x))]
        for interpreter in interpreters:
            for (y, _), expected in zip(run(interpreter, [x]), reference, strict=True):
                np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)
