"""`Model`: a whole .tflite file as Python objects, read from and written to disk.

Lives here: the root of the object tree, paths, memory mapping, atomic writing; refusal of external data.
Not here: the bytes (reader.py, writer.py), the other tables' classes (objects.py), the checks (verify.py).
"""

from __future__ import annotations

import io
import mmap
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import DataLossError, InvalidArgumentError, NotFoundError, UnimplementedError
from ...core.files import replacing
from ...core.lazy_imports import later
from . import reader, schema, verify
from .objects import SourceFile, TableObject, register

if TYPE_CHECKING:
    from . import writer
else:
    writer = later(".writer", __package__)

ASSOCIATED_LIMIT = 1 << 28  # bytes of the associated files, unpacked


class _Root(TableObject):
    """Data of a file beyond the tables of the schema.

    source: the file, if it contains fields newer than the schema. attachment: the zip archive appended to the model.
    """

    __slots__ = ("attachment", "source")
    source: SourceFile | None
    attachment: bytes | None

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        self.source = self.attachment = None


@register
class Model(_Root):
    """A .tflite file. `Model(subgraphs=[...], ...)` builds one, `Model.read` reads one.

    Weights in `buffers[i].data` are NumPy arrays; those of a file are read-only views, and the file stays mapped as
    long as any of them lives. Replace an array to change it: `buffers[i].data = new`.
    """

    __slots__ = (
        "buffers",
        "description",
        "external_buffer_groups",
        "external_buffers",
        "metadata",
        "metadata_buffer",
        "operator_codes",
        "signature_defs",
        "subgraphs",
        "version",
    )
    table_name = "Model"

    version: int
    operator_codes: list[Any]
    subgraphs: list[Any]
    description: str | None
    buffers: list[Any]
    metadata_buffer: np.ndarray
    metadata: list[Any]
    signature_defs: list[Any]
    external_buffer_groups: list[Any]
    external_buffers: list[Any]

    def __init__(self, **values: Any) -> None:
        """Set fields by keyword; the default `version` is 3."""
        super().__init__(**{"version": schema.VERSION} | values)

    def __eq__(self, other: object) -> bool:
        same = super().__eq__(other)
        return same and self.attachment == other.attachment if isinstance(other, Model) else same

    def associated_files(self) -> dict[str, bytes]:
        """Return the files appended to the model, such as labels, by name. Raises DataLossError for a damaged
        archive."""
        if self.attachment is None:
            return {}
        import zipfile

        from ...core.archives import DAMAGED_ZIP

        try:
            with zipfile.ZipFile(io.BytesIO(self.attachment)) as archive:
                if sum(entry.file_size for entry in archive.infolist()) > ASSOCIATED_LIMIT:
                    raise zipfile.BadZipFile(f"more than {ASSOCIATED_LIMIT} bytes when unpacked")
                return {name: archive.read(name) for name in archive.namelist()}
        except DAMAGED_ZIP as e:
            raise DataLossError(what=f"the archive of associated files is damaged: {e}") from None

    @staticmethod
    def read(source: str | os.PathLike[str] | bytes | bytearray | memoryview) -> Model:
        """Return the model in a file, which is mapped and not copied, or in bytes.

        raises NotFoundError for a missing file, DataLossError for a damaged one, InvalidArgumentError for another kind
        of file or schema version. This checks that the file can be read; `verify` checks its contents.
        """
        buffer = _map(source) if isinstance(source, (str, os.PathLike)) else source
        model = reader.read(buffer)
        assert isinstance(model, Model)
        return model

    def write(self, path: str | os.PathLike[str], *, unknown: str = "keep") -> None:
        """Write the file: to a temporary name in the same folder, then renamed over `path`, so never half a file.

        unknown: whether fields of a file that are newer than the schema are kept ("keep") or omitted ("drop").
        raises InvalidArgumentError where a field holds what the schema does not allow, UnimplementedError where a model
        was changed and a field newer than the schema cannot be moved (see objects.py), OSError of the file
        system
        """
        parts = writer.chunks(self, unknown)  # before the file is opened: a model that cannot be written leaves none
        with replacing(path) as file:
            file.writelines(parts)

    def to_bytes(self, *, unknown: str = "keep") -> bytes:
        """Return the file's bytes, which are a function of its contents. Raises as `write`."""
        return writer.write(self, unknown)

    def verify(self, *, flow: bool = True) -> None:
        """Check the rules of `verify.RULES`, which the reader does not: indices, shapes against buffers, calls between
        subgraphs and others.

        flow: also check that one node produces each tensor, before others read it. The official verifier requires that;
        its interpreter and this one do not. raises InvalidArgumentError with the first finding
        """
        verify.verify(self, flow)

    def tensor_data(self, tensor: Any) -> np.ndarray | None:
        """Return the bytes of a constant, one of `subgraphs[i].tensors`; None for a computed tensor.

        raises UnimplementedError if they are stored in another file
        """
        if tensor.external_buffer:
            raise external_data_error(self, tensor)
        return self.buffers[tensor.buffer].data if tensor.buffer else None


schema.enum_members("BuiltinOperator")  # takes as long as reading a small file: done at import, not with the first file


def _map(path: str | os.PathLike[str]) -> object:
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                raise DataLossError(what=f"{reader.NOT_VALID}: the file is empty", at=os.fspath(path), explain="OW401")
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except FileNotFoundError:
        raise NotFoundError(what="Could not open the model file", found=f"no file {os.fspath(path)!r}") from None
    except IsADirectoryError:
        raise InvalidArgumentError(what="Could not open the model file", found=f"folder {os.fspath(path)!r}") from None


def refuse_external(model: Any) -> None:
    """Raise UnimplementedError for the first tensor whose data is stored in another file."""
    for subgraph in model.subgraphs:
        for tensor in subgraph.tensors:
            if tensor.external_buffer:
                raise external_data_error(model, tensor)


def external_data_error(model: Any, tensor: Any) -> UnimplementedError:
    """Return the error for access to a tensor whose data is stored in another file."""
    buffer = next((b for b in model.external_buffers if b.id == tensor.external_buffer), None)
    location = f"external buffer {tensor.external_buffer}"
    if buffer is not None:
        groups = model.external_buffer_groups
        group = groups[buffer.group].name if buffer.group < len(groups) else None
        location += f" of group {group!r}, {buffer.length} bytes at offset {buffer.offset}"
        if buffer.packing:
            location += f", packed as {buffer.packing!r}"
    return UnimplementedError(
        what=f"the data of tensor {tensor.name or ''!r} is in another file, which this version does not read",
        found=location,
        wanted="data in the buffers of the model",
        do="convert the model with its weights inside",
    )
