"""A call in a process of its own, which gives back all memory that it took when it ends.

Lives here: `call_apart`; `serve`, the child's side.
Not here: what is called, and what happens where no child can be had: the caller then does the work itself.

The child is a new Python that knows nothing of this process but what it is told: the import path, the flags in force,
the arguments. So the call's effects are what it leaves in files. Nothing is forked: threads may run here meanwhile.
The child ends with this process, at the latest, as the pipe between them is closed then.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
from typing import Any, BinaryIO

from . import flags

_BOOT = (
    "import json, sys; given = sys.stdin.buffer; "
    "head = json.loads(given.read(int.from_bytes(given.read(8), 'little'))); "
    "sys.path[:] = head['path']; from opwright.core.children import serve; serve(head, given)"
)


def call_apart(target: str, arguments: list[Any], content: Any = None, **changed: Any) -> bool:
    """Call a function in a child process; whether it returned.

    target: "module:function"; arguments: what JSON can tell; content: bytes, the last argument where there are any;
    changed: flags that are others in the child
    False where there is no Python to start, the system starts no process, or the call raised
    """
    python = _python()
    if python is None:
        return False
    values = {name: flags.get(name) for name in flags.FLAGS} | changed
    head = {
        "path": [os.path.abspath(folder) for folder in sys.path],
        "flags": {name: sorted(v) if isinstance(v, frozenset) else v for name, v in values.items() if v is not None},
        "target": target,
        "arguments": arguments,
        "bytes": None if content is None else memoryview(content).nbytes,
    }
    text = json.dumps(head).encode()
    try:
        child = subprocess.Popen(
            [python, "-c", _BOOT], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
    except (OSError, ValueError, RuntimeError):  # RuntimeError: this process is ending
        return False
    try:
        assert child.stdin is not None, "it is a pipe"
        try:
            child.stdin.write(len(text).to_bytes(8, "little") + text)
            if content is not None:
                child.stdin.write(memoryview(content).cast("B"))
            child.stdin.flush()
        except OSError:  # it has ended
            return False
        return child.wait() == 0
    finally:
        child.kill()
        child.wait()
        if child.stdin is not None:
            with contextlib.suppress(OSError):  # of what was not written
                child.stdin.close()


def _python() -> str | None:
    """The program that is this Python; None in a program that only contains one."""
    name = os.path.basename(sys.executable or "").lower()
    return None if getattr(sys, "frozen", False) or not name.startswith(("python", "pypy")) else sys.executable


def serve(head: dict[str, Any], given: BinaryIO) -> None:
    """The child: make the call that the parent asks for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's
    content = None if head["bytes"] is None else given.read(head["bytes"])
    threading.Thread(target=_end_with_parent, args=(given,), daemon=True).start()
    flags.configure(**head["flags"])
    module, _, function = head["target"].partition(":")
    arguments = [*head["arguments"], *([] if content is None else [content])]
    getattr(importlib.import_module(module), function)(*arguments)


def _end_with_parent(given: BinaryIO) -> None:
    """Wait for the end of the pipe, which is that of the parent."""
    os.read(given.fileno(), 1)  # not by `given`, which Python locks as it ends
    os._exit(1)
