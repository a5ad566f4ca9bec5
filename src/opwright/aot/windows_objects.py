"""Object files for Windows that depend on no compiler's run time: what LLVM refers to, as parts of the module.

Lives here: `windows_text`, `with_stack_probes`. Not here: the module (modules.py), linking (shared_libraries.py).

For x86-64, LLVM refers to `_fltused`, which `zig cc` lacks, and to `__chkstk`, which is in Microsoft's C library alone;
MinGW and `zig cc` have it under another name.
"""

from __future__ import annotations

from ..compiler.target import Target
from .targets import object_format

PROBE = bytes.fromhex(
    "51"  # push rcx
    "50"  # push rax
    "488d4c2418"  # lea rcx, [rsp + 24]: the stack pointer of the caller
    "483d00100000"  # page: cmp rax, 4096
    "7212"  # jb last
    "4881e900100000"  # sub rcx, 4096
    "f60100"  # test byte ptr [rcx], 0
    "482d00100000"  # sub rax, 4096
    "ebe6"  # jmp page
    "4829c1"  # last: sub rcx, rax
    "f60100"  # test byte ptr [rcx], 0
    "58"  # pop rax
    "59"  # pop rcx
    "c3"  # ret
)
"""A function that reads from each page of the rax bytes below the stack pointer, and changes no register.

Windows gives a thread pages of stack one after the other, by a fault in the next one (x64 calling convention, section
"Stack allocation"). It is given in bytes, as LLVM assembles text only for the processor that it runs on.
"""


def _needs_parts(target: Target) -> bool:
    return target.is_x86 and object_format(target) == "COFF"


def windows_text(name: str, target: Target) -> list[str]:
    """Return the parts of a library's module for Windows; of other systems none."""
    if not _needs_parts(target):
        return []
    code = "".join(f"\\{byte:02X}" for byte in PROBE)
    return [
        "@_fltused = weak global i32 0",  # that of a C library comes first
        f'@"{name}.probe" = internal constant [{len(PROBE)} x i8] c"{code}", section ".text", align 16',
        f'@llvm.compiler.used = appending global [1 x ptr] [ptr @"{name}.probe"], section "llvm.metadata"',
    ]


def with_stack_probes(text: str, name: str, target: Target) -> str:
    """Return a module's text whose functions probe large frames by the function of `windows_text`."""
    if not _needs_parts(target):
        return text
    lines = text.splitlines()
    for i, line in enumerate(lines):
        if line.startswith("define ") and line.endswith(" {") and " prologue [" not in line:  # which is code in bytes
            lines[i] = f'{line[:-1]}"probe-stack"="{name}.probe" {{'
    return "\n".join(lines) + "\n"
