"""Loading of a model for an interpreter, from a path, bytes or a Model; the official messages if there is none.

Lives here: `open_model`; `open_subgraphs`, subgraphs whose tensors can be allocated.
Not here: reading the bytes (format/), resolving kernels (resolution.py).
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
    """Return the model in a file or in bytes; exactly one of the two is given.

    raises NotFoundError for a missing file, ResourceExhaustedError above the flag max_model_bytes, and the errors of
    `Model.read`
    """
    if isinstance(content, Model):
        return content
    size = 0 if content is None else len(content)  # of bytes or an array of bytes
    if path and size:
        raise InvalidArgumentError(what="Can't both provide `model_path` and `model_content`")
    if content is not None and size:
        _check_size(size, "the model")
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
    """Read and verify a model, and create its subgraphs with the resolver's kernels. Raises OpErrors."""
    model = open_model(path, content)
    model.verify(flow=False)
    refuse_external(model)
    codes = resolve(model, resolver)
    subgraphs: list[Subgraph] = []
    try:
        for i in range(len(model.subgraphs)):
            subgraphs.append(Subgraph(model, i, codes, threads, subgraphs, ownership))
        if any(c.has_init_at_creation() for c in codes):
            for subgraph in subgraphs:
                subgraph.init_early()
    except OpError:
        for subgraph in subgraphs:
            subgraph.close()
        raise
    return model, subgraphs
