"""Machine code by digest: found in the cache, or traced and compiled once per machine.

Lives here: `find_or_make`, packs, `only_cached`, digests of code; `recording`, kernels for a file of prebuilt ones;
`read_text`, texts of LLVM next to these modules.
Not here: the files (cache.py, prebuilt.py), images (image.py), digests of sources (sources.py), LLVM (target.py,
imported when something has to be compiled).

A kernel is identified by its name and constants, the processor and the sources of Opwright, so that a warm cache needs
neither tracing nor LLVM. Once it is staged, its text identifies the code, too, which other sources may have asked for.
A pack contains all kernels of one model: one file to read, one block of memory.
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

from ...core import files, flags, forks
from ...core.errors import DataLossError, UnavailableError
from ...core.named_tuples import NamedTuple
from ..background import Job, generating
from ..cache import Objects, objects
from ..target import Target, host
from . import prebuilt
from .host import is_described, keep_description
from .image import Image, load_images, merged, runs_images
from .prebuilt import Identity
from .sources import FORMAT, code_generator, sources

_SHOWN_WHEN_COMPILED = frozenset({"kernel", "llvm", "asm"})


class LoadedCode(NamedTuple):
    """A kernel in this process. address: of its function; name: of the kernel."""

    address: int
    name: str


class NotCached(UnavailableError):
    """A kernel would have to be compiled within `only_cached()`."""


class _Pack:
    """Kernels of a model. cached: digests in the cached pack; used: digests requested since."""

    def __init__(self, cached: frozenset[str]) -> None:
        self.cached = cached
        self.used: set[str] = set()


class _StoreState(threading.local):
    pack: _Pack | None = None
    only_cached: bool = False
    deferred: _BackgroundCompilation | _NoCompilation | None = None


_state = _StoreState()
_loaded: dict[str, int] = {}  # addresses by digest
_not_found = 0  # kernels that no cache had
_folders: dict[str, str | None] = {}  # the cache folder of each: the flag may have changed since
_lock = forks.lock()  # of `_compiling`
_compiling: dict[str, Any] = {}  # locks by digest: one thread compiles a kernel, others compile others


def find_or_make(name: str, constants: str, target: Target | None, make: Callable[[], tuple[str, str]]) -> LoadedCode:
    """Return the code of a kernel in this process.

    name, constants: identify it in every process (for kernels from other sources, with a digest of these); target: None
    for this processor; make: returns the LLVM text of the module and the name of its function, called if no cache has
    the code
    raises NotCached inside `only_cached()` if it would have to be compiled
    """
    if _state.only_cached and not is_described():
        raise NotCached(op=name, what="this kernel is not compiled yet")
    return _find((name, constants), target or host(), make)


def find_module(name: str, text: str, entry: str) -> LoadedCode:
    """Return the code of a module from its text, for this processor."""
    return _find((name, text), host(), lambda: (text, entry))


def _find(identity: Identity, target: Target, make: Callable[[], tuple[str, str]]) -> LoadedCode:
    name, digest = identity[0], _digest(target, *identity)
    if _state.pack is not None:
        _state.pack.used.add(digest)
    address = _loaded.get(digest)
    if address is None and _state.deferred is not None:
        _state.deferred.make(identity, target, make)
        return LoadedCode(0, name)
    if address is None:
        with _lock:
            lock = _compiling.setdefault(digest, forks.lock())
        try:
            with lock:
                address = _loaded.get(digest)
                if address is None:
                    address = _loaded[digest] = _load(digest, identity, target, make)
                    _folders[digest] = flags.cache_dir
        finally:  # also on errors
            with _lock:
                _compiling.pop(digest, None)
    return LoadedCode(address, name)


def _load(digest: str, identity: Identity, target: Target, make: Callable[[], tuple[str, str]]) -> int:
    """Load code from the cache or the package, or compile, cache and load it."""
    start, name = time.perf_counter(), identity[0]
    load, compile_code = (_load_image, _compile_image) if runs_images() else (_load_object, _compile_object)
    data = None if flags.show & _SHOWN_WHEN_COMPILED else _cached(digest, identity, target)
    address = None if data is None else load(digest, data)
    how = "found"
    if address is None:
        if _state.only_cached:
            raise NotCached(op=name, what="this kernel is not compiled yet")
        global _not_found
        _not_found += 1
        address, how = compile_code(digest, identity, make)
    if "time" in flags.show:
        print(f"{how} {name}  {(time.perf_counter() - start) * 1e3:.1f} ms", file=sys.stderr)
    return address


def _cached(digest: str, identity: Identity, target: Target) -> bytes | None:
    """Return the code of a kernel from the cache, or from the package, of which the cache then has a copy; or None."""
    data = objects(flags.cache_dir).find(digest)
    if data is None and runs_images():
        data = prebuilt.find(identity, target)
        if data is not None:
            keep_description()
            objects(flags.cache_dir).keep(digest, data)
    return data


def _load_image(digest: str, data: bytes) -> int | None:
    with contextlib.suppress(DataLossError):
        return _entry_of(load_images([Image.from_bytes(data)])[0])
    return None


def _compile_image(digest: str, identity: Identity, make: Callable[[], tuple[str, str]]) -> tuple[int, str]:
    """Return the address of a kernel and how it was made: compiled, or only staged, to a text that was compiled before.

    After a change of Opwright's sources all kernels have other keys, and most have the same texts. LLVM takes four
    fifths of the time of a kernel.
    """
    text, entry = make()
    cache, how = objects(flags.cache_dir), "staged"
    text_key = None if flags.show & _SHOWN_WHEN_COMPILED else _text_digest(text, entry)
    data = None if text_key is None else _image_of_text(cache, text_key)
    if data is None:
        from .linker import link, object_code

        how, compiled = "compile", link(object_code(text, host()))
        data = compiled._replace(entries={entry: compiled.entries[entry]}).to_bytes()
        if text_key is not None:
            cache.keep(text_key, digest.encode())
    keep_description()
    cache.keep(digest, data)
    if _recorded is not None:
        _recorded[identity] = data
    return _entry_of(load_images([Image.from_bytes(data)])[0]), how


def _image_of_text(cache: Objects, text_key: str) -> bytes | None:
    """Return the image of another kernel with the same text; None if there is none, or it is damaged."""
    other = cache.find(text_key)
    data = None if other is None else cache.find(other.decode())
    if data is not None:
        with contextlib.suppress(DataLossError):
            Image.from_bytes(data)
            return data
    return None


def _text_digest(text: str, entry: str) -> str | None:
    """Return the digest of what machine code depends on once a kernel is staged; None if that cannot be read."""
    generator = code_generator()
    return None if generator is None else _target_digest(host(), "text", generator, entry, text)


_recorded: dict[Identity, bytes] | None = None


@contextlib.contextmanager
def recording() -> Iterator[dict[Identity, bytes]]:
    """Yield the images that are compiled in the context, by all threads."""
    global _recorded
    images: dict[Identity, bytes] = {}
    _recorded = images
    try:
        yield images
    finally:
        _recorded = None


def _entry_of(entries: dict[str, int]) -> int:
    (address,) = entries.values()
    return address


# On systems with other object formats LLVM links and loads objects itself, by name.


def _load_object(digest: str, data: bytes) -> int:
    from .linker import load_object

    return load_object(data, f"k{digest}")


def _compile_object(digest: str, identity: Identity, make: Callable[[], tuple[str, str]]) -> tuple[int, str]:
    from .linker import load_object, object_code

    text, entry = make()
    code = object_code(text.replace(f'@"{entry}"', f'@"k{digest}"'), host())
    objects(flags.cache_dir).keep(digest, code)
    return load_object(code, f"k{digest}"), "compile"


@contextlib.contextmanager
def only_cached() -> Iterator[None]:
    """Raise NotCached in the context, on this thread, instead of compiling."""
    outer, _state.only_cached = _state.only_cached, True
    try:
        yield
    finally:
        _state.only_cached = outer


class _BackgroundCompilation:
    """Kernels that are traced on one thread and compiled on another."""

    def __init__(self) -> None:
        self._compiled: dict[str, Job] = {}

    def make(self, identity: Identity, target: Target, make: Callable[[], tuple[str, str]]) -> None:
        """Trace a kernel now, unless it is cached, and submit it for compilation."""
        digest = _digest(target, *identity)
        if digest not in self._compiled:
            if _cached(digest, identity, target) is None:
                make = functools.partial(tuple[str, str], make())
            self._compiled[digest] = generating.submit(functools.partial(_find, identity, target, make))

    def wait(self, done: bool) -> None:
        """Wait until all are compiled; unless done, cancel pending ones. Raises errors of compilation."""
        for job in self._compiled.values():
            if not done:
                job.cancel()
            job.wait()
            if done and job.error is not None:
                raise job.error


class _NoCompilation:
    """Kernels that are not compiled, as none is executed."""

    def make(self, identity: Identity, target: Target, make: Callable[[], tuple[str, str]]) -> None:
        """Do nothing."""


@contextlib.contextmanager
def without_code() -> Iterator[None]:
    """Return address 0 in the context, on this thread, for kernels that are not loaded."""
    outer, _state.deferred = _state.deferred, _NoCompilation()
    try:
        yield
    finally:
        _state.deferred = outer


@contextlib.contextmanager
def compiling_in_background() -> Iterator[None]:
    """Compile kernels of the context on another thread, so that LLVM and Python work concurrently.

    They are traced on this thread. Their addresses are 0: the caller repeats its requests afterwards.
    """
    outer, background = _state.deferred, _BackgroundCompilation()
    _state.deferred, done = background, False
    try:
        yield
        done = True
    finally:
        _state.deferred = outer
        background.wait(done)


@contextlib.contextmanager
def pack(model: str) -> Iterator[None]:
    """Load the kernels of a model from its pack; write the pack if it is stale.

    model: a text that identifies the model; models with equal texts are correct, but one of them is slower
    """
    digest = _digest(host(), "pack", model)
    outer, _state.pack = _state.pack, _Pack(_load_pack(digest))
    try:
        yield
        if _state.pack.used != _state.pack.cached:
            data = packed(sorted(_state.pack.used))
            if data is not None:
                objects(flags.cache_dir).keep(digest, data)
    finally:
        inner, _state.pack = _state.pack, outer
        if outer is not None:
            outer.used |= inner.used


def _load_pack(digest: str) -> frozenset[str]:
    """Load the missing kernels of a pack; return its digests."""
    skipped = flags.show & _SHOWN_WHEN_COMPILED or not runs_images()
    data = None if skipped else objects(flags.cache_dir).find(digest)
    try:
        return frozenset(load_packed(data)) if data else frozenset()
    except DataLossError:
        return frozenset()


def packed(digests: Sequence[str], others: Sequence[str] = ()) -> bytes | None:
    """Return the code of cached kernels in one image; None if one of them is not cached. others: added if cached."""
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
    """Load the result of `packed` unless loaded; return addresses by digest. Raises DataLossError."""
    image = Image.from_bytes(data)
    if any(digest not in _loaded for digest in image.entries):
        for digest, address in load_images([image])[0].items():
            _loaded.setdefault(digest, address)
            _folders.setdefault(digest, flags.cache_dir)  # from which the kernels were packed
    return {digest: _loaded[digest] for digest in image.entries}


def num_not_found() -> int:
    """Return the number of kernels that this process has begun to compile, as no cache had them."""
    return _not_found


def loaded(*names: str) -> list[str]:
    """Return the digests of modules without constants, by name, that this process has loaded."""
    return [digest for digest in (_digest(host(), name, "") for name in names) if digest in _loaded]


def digests_by_address() -> dict[int, str]:
    """Return the digests of all loaded code by address."""
    with _lock:
        return {address: digest for digest, address in _loaded.copy().items()}


def _digest(target: Target, *parts: str) -> str:
    return _target_digest(target, sources(), *parts)


def _target_digest(target: Target, *parts: str) -> str:
    words = (str(FORMAT), target.triple, target.cpu, target.features, str(target.vector_bytes), *parts)
    if not target.optimized:
        words += ("unoptimized",)
    return files.digest("\0".join(words).encode())


def program_digest(*parts: str) -> str:
    """Return the digest of data that depends on this processor, the sources of Opwright and these texts."""
    return _digest(host(), *parts)


def read_text(name: str) -> str:
    """Return a text of LLVM next to this module."""
    with open(os.path.join(os.path.dirname(__file__), name), encoding="utf-8") as file:
        return file.read()
