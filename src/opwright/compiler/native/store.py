"""Finding machine code, or making it: a kernel is staged and compiled once a machine.

Lives here: `find_or_make`, packs, `only_cached`, what code hangs on.  Not here: the files (cache.py), the form of the
code (image.py), LLVM (target.py, imported when something has to be compiled).

A kernel is known by its name and constants, the processor and Opwright's own sources, so that a warm cache asks for
neither staging nor LLVM. A pack holds all the kernels that one model uses: one file to read, one block of memory.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ... import core, scalar
from ...core import files, flags, forks
from ...core.errors import DataLossError, UnavailableError
from ...core.forks import once
from ...core.named_tuples import NamedTuple
from ..background import Job, generating
from ..cache import objects
from ..target import Target, host
from .host import is_described, keep_description
from .image import Image, load_images, merged, runs_images

FORMAT = 2  # of what the cache holds: raised where the same kernel would become other code
_SHOWN_WHEN_COMPILED = frozenset({"kernel", "llvm", "asm"})


class Code(NamedTuple):
    """A kernel in this process. address: of its function; name: what it was made as."""

    address: int
    name: str


class NotCached(UnavailableError):
    """Within `only_cached()`: this kernel would have to be compiled."""


class _Pack:
    """What one model uses. before: as the cache held it; used: digests that were asked for since."""

    def __init__(self, before: frozenset[str]) -> None:
        self.before = before
        self.used: set[str] = set()


class _Thread(threading.local):
    pack: _Pack | None = None
    only_cached: bool = False
    beside: _Beside | _Nowhere | None = None


_here = _Thread()
_loaded: dict[str, int] = {}  # addresses by digest
_folders: dict[str, str | None] = {}  # the cache that each is kept in: another may be set meanwhile
_lock = forks.lock()  # of `_making`
_making: dict[str, Any] = {}  # a kernel is made by one thread, others by others meanwhile


def find_or_make(name: str, constants: str, target: Target | None, make: Callable[[], tuple[str, str]]) -> Code:
    """The code of a kernel in this process.

    name, constants: what it is made of, in words that mean the same in every process (for a kernel whose source is
    not Opwright's own, a digest of it); target: this processor where it is None; make: gives LLVM's text of the
    module and the name of its function, called where no cache holds the code
    raises NotCached inside `only_cached()` for what would have to be compiled
    """
    if _here.only_cached and not is_described():
        raise NotCached(op=name, what="this kernel is not compiled yet")
    return _find(_digest(target or host(), name, constants), name, make)


def find_module(name: str, text: str, entry: str) -> Code:
    """The code of a module whose text is at hand already, for this processor."""
    return _find(_digest(host(), name, text), name, lambda: (text, entry))


def _find(digest: str, name: str, make: Callable[[], tuple[str, str]]) -> Code:
    if _here.pack is not None:
        _here.pack.used.add(digest)
    address = _loaded.get(digest)
    if address is None and _here.beside is not None:
        _here.beside.make(digest, name, make)
        return Code(0, name)
    if address is None:
        with _lock:
            lock = _making.setdefault(digest, forks.lock())
        try:
            with lock:
                address = _loaded.get(digest)
                if address is None:
                    address = _loaded[digest] = _load(digest, name, make)
                    _folders[digest] = flags.cache_dir
        finally:  # of what cannot be made, or is not cached, nothing stays either
            with _lock:
                _making.pop(digest, None)
    return Code(address, name)


def _load(digest: str, name: str, make: Callable[[], tuple[str, str]]) -> int:
    """Find what is kept, or make and keep it; load it."""
    start = time.perf_counter()
    find, compile_and_keep = (_find_image, _make_image) if runs_images() else (_find_object, _make_object)
    address = None if flags.show & _SHOWN_WHEN_COMPILED else find(digest)
    how = "compile" if address is None else "found"
    if address is None:
        if _here.only_cached:
            raise NotCached(op=name, what="this kernel is not compiled yet")
        address = compile_and_keep(digest, make)
    if "time" in flags.show:
        print(f"{how} {name}  {(time.perf_counter() - start) * 1e3:.1f} ms", file=sys.stderr)
    return address


def _find_image(digest: str) -> int | None:
    data = objects(flags.cache_dir).find(digest)
    if data is not None:
        with contextlib.suppress(DataLossError):
            return _only(load_images([Image.from_bytes(data)])[0])
    return None


def _make_image(digest: str, make: Callable[[], tuple[str, str]]) -> int:
    from ..engine import object_code
    from .linking import link

    text, entry = make()
    image = link(object_code(text, host()))
    image = image._replace(entries={entry: image.entries[entry]})
    keep_description()
    objects(flags.cache_dir).keep(digest, image.to_bytes())
    return _only(load_images([image])[0])


def _only(entries: dict[str, int]) -> int:
    (address,) = entries.values()
    return address


# On systems for which LLVM makes another kind of object it links and loads them itself, and knows them by name.


def _find_object(digest: str) -> int | None:
    from ..engine import load_object

    code = objects(flags.cache_dir).find(digest)
    return None if code is None else load_object(code, f"k{digest}")


def _make_object(digest: str, make: Callable[[], tuple[str, str]]) -> int:
    from ..engine import load_object, object_code

    text, entry = make()
    code = object_code(text.replace(f'@"{entry}"', f'@"k{digest}"'), host())
    objects(flags.cache_dir).keep(digest, code)
    return load_object(code, f"k{digest}")


@contextlib.contextmanager
def only_cached() -> Iterator[None]:
    """Within, on this thread: what would have to be compiled raises NotCached instead."""
    before, _here.only_cached = _here.only_cached, True
    try:
        yield
    finally:
        _here.only_cached = before


class _Beside:
    """Kernels that are staged on one thread and compiled on another."""

    def __init__(self) -> None:
        self._compiled: dict[str, Job] = {}

    def make(self, digest: str, name: str, make: Callable[[], tuple[str, str]]) -> None:
        """Stage a kernel now, unless it is kept already, and have it compiled."""
        if digest not in self._compiled:
            if objects(flags.cache_dir).find(digest) is None:
                make = _given(make())
            self._compiled[digest] = generating.submit(functools.partial(_find, digest, name, make))

    def wait(self, done: bool) -> None:
        """Until all are compiled; or give up what was not begun. Raises what compiling raised."""
        for job in self._compiled.values():
            if not done:
                job.cancel()
            job.wait()
            if done and job.error is not None:
                raise job.error


class _Nowhere:
    """Where kernels go that nobody runs."""

    def make(self, digest: str, name: str, make: Callable[[], tuple[str, str]]) -> None:
        """Make nothing."""


@contextlib.contextmanager
def without_code() -> Iterator[None]:
    """Within, on this thread: kernels that are not loaded are neither looked for nor made; their addresses are 0."""
    before, _here.beside = _here.beside, _Nowhere()
    try:
        yield
    finally:
        _here.beside = before


def _given(made: tuple[str, str]) -> Callable[[], tuple[str, str]]:
    return lambda: made


@contextlib.contextmanager
def compiling_beside() -> Iterator[None]:
    """Within, on this thread: kernels that are to be compiled are staged at once and compiled by another thread, so
    that LLVM and Python work at the same time. Their addresses are 0: what asks for them is done again afterwards."""
    before, beside = _here.beside, _Beside()
    _here.beside, done = beside, False
    try:
        yield
        done = True
    finally:
        _here.beside = before
        beside.wait(done)


@contextlib.contextmanager
def pack(model: str) -> Iterator[None]:
    """Around all that asks for one model's kernels: they come at once from one file, which is written where it was not
    what they are.

    model: any text that stands for the model; where two models have the same, both are right and one is slower
    """
    digest = _digest(host(), "pack", model)
    outer, _here.pack = _here.pack, _Pack(_load_pack(digest))
    try:
        yield
        if _here.pack.used != _here.pack.before:
            _keep_pack(digest, sorted(_here.pack.used))
    finally:
        inner, _here.pack = _here.pack, outer
        if outer is not None:
            outer.used |= inner.used


def _load_pack(digest: str) -> frozenset[str]:
    """Load what a pack holds and this process does not have. Gives the digests in it."""
    skipped = flags.show & _SHOWN_WHEN_COMPILED or not runs_images()
    data = None if skipped else objects(flags.cache_dir).find(digest)
    try:
        return frozenset(load_packed(data)) if data else frozenset()
    except DataLossError:
        return frozenset()


def _keep_pack(digest: str, used: list[str]) -> None:
    data = packed(used)
    if data is not None:
        objects(flags.cache_dir).keep(digest, data)


def packed(digests: Sequence[str], others: Sequence[str] = ()) -> bytes | None:
    """The code of kernels that are in the cache, in one piece; None where one of them is not. others: what is added
    where the cache has it."""
    if not runs_images():
        return None
    images = {}
    for digest in (*digests, *others):
        data = objects(flags.cache_dir).find(digest) or objects(_folders.get(digest, flags.cache_dir)).find(digest)
        with contextlib.suppress(DataLossError):
            if data is not None:
                images[digest] = Image.from_bytes(data)
    return merged(images).to_bytes() if all(digest in images for digest in digests) else None


def load_packed(data: bytes | memoryview) -> dict[str, int]:
    """Load what `packed` gave, if this process lacks any of it: addresses by digest. Raises DataLossError."""
    image = Image.from_bytes(data)
    if any(digest not in _loaded for digest in image.entries):
        for digest, address in load_images([image])[0].items():
            _loaded.setdefault(digest, address)
            _folders.setdefault(digest, flags.cache_dir)  # whose kernels were packed
    return {digest: _loaded[digest] for digest in image.entries}


def loaded(*names: str) -> list[str]:
    """What modules that are made of nothing but their names are kept as: of those, what this process has loaded."""
    return [digest for digest in (_digest(host(), name, "") for name in names) if digest in _loaded]


def digests_by_address() -> dict[int, str]:
    """Of all that this process has loaded, what it is kept as."""
    with _lock:
        return {address: digest for digest, address in _loaded.copy().items()}


def _digest(target: Target, *parts: str) -> str:
    words = (str(FORMAT), target.triple, target.cpu, target.features, str(target.vector_bytes), sources(), *parts)
    return files.digest("\0".join(words).encode())


def program_digest(*parts: str) -> str:
    """What something that hangs on this processor, on Opwright's own sources and on these texts is kept as."""
    return _digest(host(), *parts)


@once
def sources() -> str:
    """A digest of the sources that kernels are made by: names, sizes and times of their files."""
    found: list[str] = []
    for package in (__package__.rpartition(".")[0], scalar.__name__, core.__name__):
        list_sources(os.path.dirname(sys.modules[package].__file__ or ""), found)
    list_sources(os.path.join(os.path.dirname(core.__file__ or ""), os.pardir, "autograph"), found)  # not yet imported
    if not found:  # Opwright lies in an archive: each process makes its own code
        found = [os.urandom(32).hex()]
    return files.digest("\0".join(found).encode())


def read_text(name: str) -> str:
    """A text of LLVM's that lies beside this module."""
    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as file:
        return file.read()


def list_sources(folder: str, found: list[str], endings: tuple[str, ...] = (".py", ".ll")) -> None:
    """Add the names, sizes and times of a folder's sources, whose names end so."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda e: e.name):
            if entry.name.endswith(endings):
                stat = entry.stat()
                found.append(f"{entry.name} {stat.st_size} {stat.st_mtime_ns}")
            elif entry.is_dir() and entry.name != "__pycache__":
                list_sources(entry.path, found, endings)
