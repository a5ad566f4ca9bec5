"""Modules in LLVM's text for tests of what links, keeps, loads and runs code."""

from __future__ import annotations

import ctypes

# All that an object of LLVM's has: a table, a jump table, addresses of tables and functions, constant vectors, calls
# of this module, of the C library, and by memset and memcpy.  @all(out, which, n, in)
TABLE = [(7 * i) & 255 for i in range(256)]
EVERYTHING = """
@table = private constant [256 x i8] c"%TABLE%", align 64
@addresses = internal constant [3 x ptr] [ptr @table, ptr @all, ptr @half]
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare float @ldexpf(float, i32)
define internal float @half(float %x) noinline {
  %y = call float @ldexpf(float %x, i32 -1)
  ret float %y
}
define i64 @visible(i64 %x) noinline {
  %y = mul i64 %x, 3
  ret i64 %y
}
define i64 @all(ptr %out, i64 %which, i64 %n, ptr %in) {
  switch i64 %which, label %unknown [ i64 0, label %set i64 1, label %copy i64 2, label %look i64 3, label %address
                                      i64 4, label %vector i64 5, label %calls i64 6, label %function ]
set:
  call void @llvm.memset.p0.i64(ptr %out, i8 0, i64 %n, i1 0)
  ret i64 0
copy:
  call void @llvm.memcpy.p0.p0.i64(ptr %out, ptr %in, i64 %n, i1 0)
  ret i64 0
look:
  %at = getelementptr [256 x i8], ptr @table, i64 0, i64 %n
  %byte = load i8, ptr %at
  %looked = zext i8 %byte to i64
  ret i64 %looked
address:
  %entry = getelementptr [3 x ptr], ptr @addresses, i64 0, i64 %n
  %held = load ptr, ptr %entry
  %word = ptrtoint ptr %held to i64
  ret i64 %word
vector:
  %v = load <4 x float>, ptr %in, align 4
  %w = fmul <4 x float> %v, <float 1.0, float 2.0, float 3.0, float 4.0>
  store <4 x float> %w, ptr %out, align 4
  ret i64 0
calls:
  %x = sitofp i64 %n to float
  %h = call float @half(float %x)
  %i = fptosi float %h to i64
  %j = call i64 @visible(i64 %i)
  ret i64 %j
function:
  store ptr @visible, ptr %out
  store ptr @ldexpf, ptr %in
  ret i64 0
unknown:
  ret i64 -1
}
""".replace("%TABLE%", "".join(f"\\{b:02X}" for b in TABLE))

KERNEL = "define i64 @k(ptr %words, i64 %begin, i64 %end, ptr %scratch) {\n"
ANSWER = KERNEL + "  ret i64 VALUE\n}\n"  # gives a number
# words: int64[n]: adds one to each item
ADD_ONE = (
    KERNEL
    + """entry:
  %array = load ptr, ptr %words
  %any = icmp slt i64 %begin, %end
  br i1 %any, label %loop, label %done
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %at = getelementptr i64, ptr %array, i64 %i
  %old = load i64, ptr %at
  %new = add i64 %old, 1
  store i64 %new, ptr %at
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  ret i64 0
}
"""
)
# words: int64[n], a limit: fails with 7 where the items reach it
GUARD = (
    KERNEL
    + """
  %limit.ptr = getelementptr i64, ptr %words, i64 1
  %limit = load i64, ptr %limit.ptr
  %out = icmp sge i64 %end, %limit
  %status = select i1 %out, i64 7, i64 0
  ret i64 %status
}
"""
)
# words: int64[n]: item i is told its scratch memory, in which all was as long as the call's own number
SCRATCH = (
    KERNEL
    + """entry:
  %array = load ptr, ptr %words
  %place = ptrtoint ptr %scratch to i64
  store i64 %begin, ptr %scratch
  br label %loop
loop:
  %i = phi i64 [ %begin, %entry ], [ %next, %loop ]
  %at = getelementptr i64, ptr %array, i64 %i
  store i64 %place, ptr %at
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %end
  br i1 %more, label %loop, label %done
done:
  %found = load volatile i64, ptr %scratch
  %other = icmp ne i64 %found, %begin
  %status = zext i1 %other to i64
  ret i64 %status
}
"""
)
# words: a counter, how many must meet, turns: comes, and waits until all have come; 1 where that takes too long
MEET = (
    KERNEL
    + """entry:
  %counter = load ptr, ptr %words
  %wanted.ptr = getelementptr i64, ptr %words, i64 1
  %wanted = load i64, ptr %wanted.ptr
  %turns.ptr = getelementptr i64, ptr %words, i64 2
  %turns = load i64, ptr %turns.ptr
  %came = atomicrmw add ptr %counter, i64 1 seq_cst
  br label %wait
wait:
  %turn = phi i64 [ 0, %entry ], [ %turn.next, %later ]
  %here = load atomic i64, ptr %counter seq_cst, align 8
  %all = icmp sge i64 %here, %wanted
  br i1 %all, label %met, label %later
later:
  %turn.next = add i64 %turn, 1
  %patient = icmp slt i64 %turn, %turns
  br i1 %patient, label %wait, label %missed
met:
  ret i64 0
missed:
  ret i64 1
}
"""
)
# words: turns: counts them
SPIN = (
    KERNEL
    + """entry:
  %turns = load i64, ptr %words
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %next = add i64 %i, 1
  store volatile i64 %next, ptr %words
  %more = icmp slt i64 %next, %turns
  br i1 %more, label %loop, label %done
done:
  store volatile i64 %turns, ptr %words
  ret i64 0
}
"""
)


def function(address: int) -> ctypes._CFuncPtr:
    """A kernel, or `all` above, to be called."""
    kinds = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
    return ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(address)
