"""`opwright explain CODE`: explain an error's stable code.

Lives here: the table of codes.  Not here: the errors; they carry a code as `explain="OW101"`.
"""

from __future__ import annotations

import difflib
from typing import NamedTuple

from rich.table import Table
from rich.text import Text

from .report import notes, out, print_json, prose


class CodeExplanation(NamedTuple):
    """title: the error in one line; why: its cause; ways: remedies, best first."""

    title: str
    why: str
    ways: tuple[str, ...]


CODES: dict[str, CodeExplanation] = {
    "OW101": CodeExplanation(
        "Encountered unresolved custom op",
        "The model file names a custom operator, and the interpreter was not given one of that name. The file holds "
        "only the name, the version and the options; what the operator does has to come from you.",
        (
            "Define it with @ow.operator (or lite.Registration) and pass it: lite.Interpreter(..., custom_ops=[Atan])",
            "The catalogue may have it: custom_ops=[ow.ops.get('Atan')]; opwright op show Atan",
            "Write a package (opwright op new NAME) and install it: from then on the operator is found by its name",
            "It exists in C or C++: lite.load_custom_ops(library), lite.build_custom_ops(sources)",
            "Put several into a lite.MutableOpResolver with add_custom and pass op_resolver=",
            "See which ones a file needs: opwright check MODEL",
        ),
    ),
    "OW102": CodeExplanation(
        "Didn't find op for builtin opcode 'X' version 'N'",
        "The file was written for a run time that has this builtin operator, or this version of it, and here it is "
        "missing. An older version of a kernel may give wrong answers on a newer file, so the model is refused.",
        (
            "See what the file needs: opwright check MODEL",
            "Add the operator: MutableOpResolver.add_builtin(op, registration, min_version, max_version)",
            "Convert again for an older run time: converter.target_spec.runtime",
        ),
    ),
    "OW103": CodeExplanation(
        "A quantised or otherwise unsupported tensor type in a builtin operator",
        "The operator exists here, but not for tensors of this type.",
        ("Convert the model without quantisation", "Override the builtin with your own: MutableOpResolver.add_builtin"),
    ),
    "OW201": CodeExplanation(
        "'tf.X' op is neither a custom op nor a flex op",
        "The graph has an operator that the .tflite format has no builtin for, at least not with these dtypes and "
        "options.",
        (
            "Make it a custom operator: converter.allow_custom_ops = True, and give the interpreter its definition",
            "Write the same with operators that have a builtin; opwright op show X tells what X computes",
            "If only the dtype is in the way (float64 for instance), cast to float32 before it",
        ),
    ),
    "OW202": CodeExplanation(
        "A variable is written to in the graph, in a way that files have no form for",
        "Variables that are only read become constants. Those that some function writes become variables of the model, "
        "if they are set by assign, assign_add, assign_sub, scatter_update, _add, _sub, _max and _min or an "
        "optimizer, hold no strings, and converter.experimental_enable_resource_variables is not False.",
        ("Write the change as variable.assign(new value)", "Take the old value as an argument and return the new one"),
    ),
    "OW301": CodeExplanation(
        "An input has a dtype that the operator does not take, or two inputs differ in dtype",
        "Nothing is promoted silently: float32 and float64, or int32 and int64, do not mix. Only Python numbers and "
        "lists, and NumPy arrays where nothing is lost, take the dtype of the tensor beside them.",
        ("ow.cast(x, ow.float32)", "Give the dtype where the tensor is made: ow.constant(x, ow.float32)"),
    ),
    "OW401": CodeExplanation(
        "The model file is damaged or is not a .tflite file",
        "An offset, length, index or identifier in the file cannot be true. Nothing of it was used.",
        (
            "Check how it was copied: its bytes 4 to 7 must read TFL3",
            "The error names the structure that failed; convert the model again if it was not copied at all",
        ),
    ),
    "OW501": CodeExplanation(
        "The operator has no gradient",
        "A gradient was asked for through an operator whose definition has none.",
        (
            "Define gradient(op, dy) in it",
            "Put ow.stop_gradient around its result",
            "Wrap the stretch in @ow.custom_gradient",
        ),
    ),
    "OW601": CodeExplanation(
        "A symbolic tensor was used as a Python value",
        "Inside ow.function tensors have no values yet. AutoGraph makes Python's if, while and for on them part of "
        "the graph, in your functions and those they call; where it does not reach (autograph=False, do_not_convert, "
        "code of libraries, generators) Python asks the tensor itself, which cannot answer.",
        (
            "Write the condition in a function that is converted, or use ow.cond, ow.while_loop, ow.where",
            "Pass what decides as a Python value; each value gets its trace",
        ),
    ),
    "OW602": CodeExplanation(
        "A tensor is out of scope",
        "A tensor made while a function was traced was kept (in a list, a global, an attribute) and used after the "
        "trace ended. It stands for a place in that function's graph, not for a value.",
        ("Return it from the function", "Keep it in an ow.Variable"),
    ),
    "OW603": CodeExplanation(
        "A variable was made on a later call of a function",
        "A function is traced many times but its variables must be made once.",
        ("Make the variable outside", "Make it on the first call only: if self.v is None: self.v = ow.Variable(...)"),
    ),
}


def print_explanation(code: str | None, as_json: bool = False) -> bool:
    """Print one explanation, or the list. False for an unknown code."""
    if code is None:
        if as_json:
            print_json({key: entry._asdict() for key, entry in CODES.items()})
            return True
        table = Table("code", "error")
        for key, entry in CODES.items():
            table.add_row(key, entry.title)
        out().print(table)
        return True
    key = code.upper()
    explanation = CODES.get(key)
    if explanation is None:
        near = difflib.get_close_matches(key, CODES, 3, 0.4)
        hint = f"; did you mean {', '.join(near)}?" if near else "; `opwright explain` lists them"
        notes().print(f"opwright: no error has the code {code!r}{hint}")
        return False
    if as_json:
        print_json({key: explanation._asdict()})
        return True
    out().print(Text(key, "bold").append(f"  {explanation.title}", "not bold"))
    out().print()
    prose(explanation.why)
    out().print()
    for i, way in enumerate(explanation.ways, 1):
        prose(f"  {i}. {way}", indent="     ")
    return True
