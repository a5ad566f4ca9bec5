"""Errors: the codes, the one layout of their text, what they are instances of."""

import pickle

import pytest

from opwright.core import errors

# google.rpc.Code: the numbers of the field's status codes
CODES = [
    ("OpError", 2, "UNKNOWN"),
    ("InvalidArgumentError", 3, "INVALID_ARGUMENT"),
    ("SignatureError", 3, "INVALID_ARGUMENT"),
    ("DefinitionError", 3, "INVALID_ARGUMENT"),
    ("NotFoundError", 5, "NOT_FOUND"),
    ("AlreadyExistsError", 6, "ALREADY_EXISTS"),
    ("ResourceExhaustedError", 8, "RESOURCE_EXHAUSTED"),
    ("FailedPreconditionError", 9, "FAILED_PRECONDITION"),
    ("OutOfRangeError", 11, "OUT_OF_RANGE"),
    ("UnimplementedError", 12, "UNIMPLEMENTED"),
    ("InternalError", 13, "INTERNAL"),
    ("DataLossError", 15, "DATA_LOSS"),
    ("CancelledError", 1, "CANCELLED"),
    ("UnknownError", 2, "UNKNOWN"),
    ("DeadlineExceededError", 4, "DEADLINE_EXCEEDED"),
    ("PermissionDeniedError", 7, "PERMISSION_DENIED"),
    ("AbortedError", 10, "ABORTED"),
    ("UnavailableError", 14, "UNAVAILABLE"),
    ("UnauthenticatedError", 16, "UNAUTHENTICATED"),
]


@pytest.mark.parametrize(("name", "code", "word"), CODES, ids=[c[0] for c in CODES])
def test_codes(name, code, word):
    error = getattr(errors, name)("what happened")
    assert (error.code, error.error_code, error.code_name) == (code, code, word)
    assert isinstance(error, errors.OpError)
    assert str(error) == error.message == "what happened"


def test_every_class_is_in_the_table():
    result = {n for n, v in vars(errors).items() if isinstance(v, type) and issubclass(v, errors.OpError)}
    assert result == {c[0] for c in CODES}


def test_the_whole_layout():
    error = errors.InvalidArgumentError(
        op="matmul",
        node="y",
        at="head.py:15",
        what="inner sizes differ, 128 and 10",
        found={"a": "f32[8,128]", "b": "f32[10,128]"},
        wanted="a.shape[-1] == b.shape[-2]",
        do="transpose_b=True",
    )
    assert str(error) == (
        "matmul 'y' (head.py:15): inner sizes differ, 128 and 10\n"
        "  found   a f32[8,128], b f32[10,128]\n"
        "  wanted  a.shape[-1] == b.shape[-2]\n"
        "  try     transpose_b=True"
    )
    assert (error.op, error.node, error.at) == ("matmul", "y", "head.py:15")


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ({"what": "w"}, "w"),
        ({"what": "w", "op": "Add"}, "Add: w"),
        ({"what": "w", "node": "y"}, "'y': w"),
        ({"what": "w", "at": "f.py:1"}, "(f.py:1): w"),
        ({"what": "w", "found": 0}, "w\n  found   0"),
        ({"what": "w", "found": [], "wanted": False}, "w\n  found   []\n  wanted  False"),
        ({"message": "m"}, "m"),
        ({}, "InvalidArgumentError without a message"),
    ],
    ids=str,
)
def test_parts_may_be_left_out(parts, text):
    assert str(errors.InvalidArgumentError(**parts)) == text


def test_python_classes():
    assert issubclass(errors.InvalidArgumentError, ValueError)
    assert issubclass(errors.SignatureError, TypeError)
    assert issubclass(errors.SignatureError, errors.InvalidArgumentError)


def test_pickling_keeps_the_text():
    error = errors.NotFoundError(op="Load", what="no such file", found="x.npy")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is errors.NotFoundError
    assert str(again) == str(error)
    assert again.op == "Load"


def test_positional_form_of_tensorflow():
    error = errors.NotFoundError(None, None, "no such file")
    assert (error.message, error.error_code) == ("no such file", 5)
