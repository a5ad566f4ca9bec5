"""`.pt2` files: what is refused before PyTorch reads it, by changes of a file that torch 2.13 wrote (linear.pt2).

Lives here: what needs no torch. Not here: programs (test_torch_programs.py).
"""

from __future__ import annotations

import contextlib
import io
import json
import pickle
import random
import zipfile
from pathlib import Path

import pytest

from opwright.core.errors import InvalidArgumentError, OpError
from opwright.frontends.torch.archives import check_archive
from replaced_files import replace_file
from thorough import examples

FILE = Path(__file__).parent / "linear.pt2"
MODEL, WEIGHTS = "linear/models/model.json", "linear/data/weights/model_weights_config.json"
SAMPLES, CONSTANTS = "linear/data/sample_inputs/model.pt", "linear/data/constants/model_constants_config.json"


class Code:
    def __reduce__(self):
        return (print, ("executed",))


def members():
    with zipfile.ZipFile(FILE) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archive_of(parts, method=zipfile.ZIP_STORED, offset=None):
    """Return an archive; offset: where the last member is said to begin."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", method) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
        if offset is not None:
            archive.infolist()[-1].header_offset = offset
    return content.getvalue()


def edited(name, change):
    """Return the members with a changed JSON."""
    parts = members()
    value = json.loads(parts[name])
    change(value)
    return parts | {name: json.dumps(value).encode()}


def first_node(value):
    return value["graph_module"]["graph"]["nodes"][0]


def size_of(value, text):
    tensor = next(iter(value["graph_module"]["graph"]["tensor_values"].values()))
    tensor["sizes"][0] = {"as_expr": {"expr_str": text, "hint": None}}


def saved(value):
    """Return an object as torch.save writes it."""
    return archive_of({"archive/data.pkl": pickle.dumps(value, 2), "archive/version": b"3"})


HOSTILE = {
    "not an operator": lambda: edited(MODEL, lambda v: first_node(v).update(target="torch.os.system")),
    "not an operator ": lambda: edited(MODEL, lambda v: first_node(v).update(target="torch.ops.__init__.__globals__")),
    "not arithmetic": lambda: edited(MODEL, lambda v: size_of(v, "().__class__")),
    "not arithmetic ": lambda: edited(MODEL, lambda v: size_of(v, "__import__('os').system('x')")),
    "not arithmetic  ": lambda: edited(MODEL, lambda v: size_of(v, "input(Symbol('s'))")),
    "not arithmetic   ": lambda: edited(MODEL, lambda v: size_of(v, "9**9**9**9")),
    "more than tensors": lambda: members() | {SAMPLES: saved(Code())},
    "not an archive of one object": lambda: members() | {SAMPLES: pickle.dumps(Code())},
    "not an archive of one object ": lambda: edited(
        WEIGHTS, lambda v: v["config"]["linear.bias"].update(use_pickle=True)
    ),
    "not a tensor": lambda: edited(CONSTANTS, lambda v: v["config"].update(c={"path_name": "opaque_obj_0"})),
    "outside of the file": lambda: members() | {"linear/../../weight": b"x"},
    "no program of torch.export": lambda: members() | {SAMPLES: archive_of({"a/data.pkl": b"."}, offset=(1 << 64) - 1)},
    "has code": lambda: members() | {SAMPLES: archive_of({"a/data.pkl": b".", "a/code/model.py": b"x"})},
}


def check(content, path):
    replace_file(path, content)
    check_archive(path)


def test_files_of_pytorch_pass(tmp_path):
    check_archive(FILE)
    symbol = "Symbol('s7', positive=True, integer=True)"
    for text in (
        "Max(1, s0 - 2)*(s1//4) + 3",
        f"FloorDiv(Add({symbol}, Integer(-2)), 4)",
        f"Pow({symbol}, Integer(2))",
    ):
        check(archive_of(edited(MODEL, lambda v, text=text: size_of(v, text))), tmp_path / "m.pt2")


@pytest.mark.parametrize("says", HOSTILE)
def test_hostile_files_are_refused(says, tmp_path):
    with pytest.raises(InvalidArgumentError, match=says.strip()):
        check(archive_of(HOSTILE[says]()), tmp_path / "m.pt2")


def test_members_that_expand_are_refused(tmp_path):
    content = archive_of(members() | {"linear/data/weights/weight_9": bytes(1 << 22)}, zipfile.ZIP_DEFLATED)
    with pytest.raises(InvalidArgumentError, match=r"larger than the file|compressed"):
        check(content, tmp_path / "m.pt2")


def test_mutants_are_read_or_errors(tmp_path):
    draw, content = random.Random(24), FILE.read_bytes()
    for _ in range(examples(400)):
        mutant = bytearray(content)
        for _ in range(draw.choice((1, 2, 8))):
            mutant[draw.randrange(len(mutant))] = draw.randrange(256)
        with contextlib.suppress(OpError):
            check(bytes(mutant), tmp_path / "m.pt2")
