"""Opening a model for an interpreter: from a path, from bytes or from a Model; official words when it is not there.

Lives here: `open_model`; `open_subgraphs`, ready for their tensors to be allocated.
Not here: reading the bytes (format/), finding kernels (resolution.py).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ...core import flags
from ...core.errors import InvalidArgumentError, NotFoundError, OpError, ResourceExhaustedError
from ..format import Model
from ..format.model import refuse_external
from .ownership import Ownership
from .resolution import resolve
from .subgraph import Subgraph

if TYPE_CHECKING:
    from ..resolver import OpResolver

EMPTY = "The model allocation is null/empty"


def open_model(path: Any, content: Any) -> Model:
    """The model in a file or in bytes; exactly one of the two is given.

    raises NotFoundError for a file that is not there, ResourceExhaustedError above the flag max_model_bytes, and what
    `Model.read` raises
    """
    if isinstance(content, Model):
        return content
    given = content is not None and len(content) > 0  # bytes and arrays of them alike
    if path and given:
        raise InvalidArgumentError(what="Can't both provide `model_path` and `model_content`")
    if given:
        _check_size(len(content), "the model")
        return Model.read(content)
    if not path:
        raise InvalidArgumentError(what="`model_path` or `model_content` must be specified.")
    name = os.fspath(path)
    try:
        size = os.stat(name).st_size
        if os.path.isdir(name):
            raise IsADirectoryError(0, "it is a folder")
        if size == 0:
            raise InvalidArgumentError(what=f"mmap of size 0 requested.{EMPTY}", found=f"empty file {name!r}")
        _check_size(size, f"the model {name!r}")
        return Model.read(name)
    except OSError as error:
        raise NotFoundError(what=f"Could not open '{name}'.{EMPTY}", found=error.strerror) from None


def _check_size(size: int, what: str) -> None:
    limit = flags.get("max_model_bytes")
    if size > limit:
        raise ResourceExhaustedError(
            what=f"{what} has {size} bytes", wanted=f"at most {limit}", do="set the flag max_model_bytes higher"
        )


def open_subgraphs(
    path: Any, content: Any, resolver: OpResolver, threads: int, ownership: Ownership
) -> tuple[Model, list[Subgraph]]:
    """Read and verify a model, and make its subgraphs with the kernels that the resolver has. Raises OpErrors."""
    model = open_model(path, content)
    model.verify(flow=False)
    refuse_external(model)
    codes = resolve(model, resolver)
    subgraphs: list[Subgraph] = []
    try:
        for i in range(len(model.subgraphs)):
            subgraphs.append(Subgraph(model, i, codes, threads, subgraphs, ownership))
        if any(c.has_early() for c in codes):
            for subgraph in subgraphs:
                subgraph.init_early()
    except OpError:
        for subgraph in subgraphs:
            subgraph.close()
        raise
    return model, subgraphs
