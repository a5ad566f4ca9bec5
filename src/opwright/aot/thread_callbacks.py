"""Steps of a library on threads that the caller provides by two callbacks.

Lives here: `structure_of`, the declaration in C; `share_text`, the functions that divide a step, for LLVM;
`count_text`, instructions that ask for the number of threads; `share_in_c`, `count_in_c`, the same in C11.
Not here: the functions that run the steps (plan_functions.py, c_steps.py), worker threads of this process
(compiler/native/workers.py).

A step is divided into chunks of its items, which are independent: results do not depend on the division. A run calls

    size_t thread_count(void *context)
    void parallel_for(void *context, size_t count, void (*task)(void *work, size_t index), void *work)

The work is on the stack of the caller of the run. A task claims chunks, by a counter, until none is left; its index is
that of its scratch memory. So any division of the indices among threads is right, one after the other included, and a
thread that starts late leaves its part to the others. Chunks are counted once more when they are done: parallel_for
that returns before is an error.
"""

from __future__ import annotations

from ..compiler.loops.plans import KernelStep
from .status_codes import ARENA_TOO_SMALL, NO_MEMORY, OK, UNFINISHED

CHUNKS_A_THREAD = 8
"""As of the interpreter: threads finish at about the same time."""
MOST_THREADS = 1024
MOST_ITEMS = 1 << 31
"""Chunks are counted in size_t."""
UNFINISHED_STEP = -1
"""The result of a shared step instead of the status of a kernel, which is the number of a guard."""


def is_shared(step: KernelStep) -> bool:
    """Return whether a step is divided among threads: not one of little work, which is a single chunk."""
    return max(step.chunk or 1, 1) < step.items < MOST_ITEMS


def structure_of(name: str, base: int, stride: int) -> list[str]:
    """Return the declaration of a library's threads in C. base, stride: bytes of the arena, for all threads and for
    each."""
    big = name.upper()
    return f"""
/* The same for a run on several threads. */
#define {big}_ARENA_SIZE_FOR(threads) ({base}u + {stride}u * (size_t)(threads))

/* Threads that the caller provides. thread_count returns how many calls of a task may run at the same time;
   parallel_for calls task(work, index) once for each index below count, on any threads, and returns after all have
   returned. Both are called with context. NULL instead of a structure: a run on the calling thread. Results are the
   same in every bit. */
struct {name}_threads {{
  void *context;
  size_t (*thread_count)(void *context);
  void (*parallel_for)(void *context, size_t count, void (*task)(void *work, size_t index), void *work);
}};""".splitlines()


def count_text(base: int, stride: int, wide: int) -> list[str]:
    """Return instructions that ask for the number of threads, %threads.count, and check the memory for it.

    wide: bits of size_t
    """
    return f"""\
  br label %unthreaded
unthreaded:
  %no.threads = icmp eq ptr %threads, null
  br i1 %no.threads, label %counted, label %threaded
threaded:
  %context = load ptr, ptr %threads
  %counter.field = getelementptr ptr, ptr %threads, i32 1
  %counter = load ptr, ptr %counter.field
  %no.counter = icmp eq ptr %counter, null
  br i1 %no.counter, label %absent, label %countable
countable:
  %for.field = getelementptr ptr, ptr %threads, i32 2
  %for = load ptr, ptr %for.field
  %no.for = icmp eq ptr %for, null
  br i1 %no.for, label %absent, label %ask
ask:
  %asked = call i{wide} %counter(ptr %context)
  %any = call i{wide} @llvm.umax.i{wide}(i{wide} %asked, i{wide} 1)
  %few = call i{wide} @llvm.umin.i{wide}(i{wide} %any, i{wide} {MOST_THREADS})
  %beyond = sub i{wide} %size, {base}
  %places = udiv i{wide} %beyond, {stride}
  %enough = icmp ule i{wide} %few, %places
  br i1 %enough, label %counted, label %small
counted:
  %threads.count = phi i{wide} [ 1, %unthreaded ], [ %few, %ask ]""".splitlines()


def share_text(name: str, stride: int, wide: int) -> list[str]:
    """Return the function that runs a step on threads, and its task.

    i64 NAME.share(kernel, words, items, chunk or 0, scratch, threads, their number) returns a status or
    UNFINISHED_STEP. wide: bits of size_t
    """
    job = f"%{name}.job"
    count = "%count" if wide == 64 else "%count.wide"
    widened = [] if wide == 64 else [f"  %count.wide = zext i{wide} %count to i64"]
    narrow = "add" if wide == 64 else "trunc"
    chunks = (
        "  %chunks = add i64 %chunks.wide, 0" if wide == 64 else f"  %chunks = {narrow} i64 %chunks.wide to i{wide}"
    )
    number = "  %n.wide = add i64 %n, 0" if wide == 64 else f"  %n.wide = zext i{wide} %n to i64"
    fields = ("kernel", "words", "items", "chunk", "scratch", "tasks", "chunks", "next", "done", "failed")
    kinds = dict.fromkeys(fields, f"i{wide}") | dict.fromkeys(("kernel", "words", "scratch"), "ptr")
    kinds |= {"items": "i64", "chunk": "i64"}

    def place(field: str) -> str:
        return f"  %{field}.place = getelementptr {job}, ptr %job, i32 0, i32 {fields.index(field)}"

    values = {"tasks": "%tasks", "chunks": "%chunks", "next": "0", "done": "0", "failed": "0"}
    stores = [
        line
        for field in fields
        for line in (place(field), f"  store {kinds[field]} {values.get(field, f'%{field}')}, ptr %{field}.place")
    ]
    loads = [
        line for field in fields[:7] for line in (place(field), f"  %{field} = load {kinds[field]}, ptr %{field}.place")
    ]
    return [
        f"{job} = type {{ {', '.join(kinds.values())} }}",
        f"declare i{wide} @llvm.umax.i{wide}(i{wide}, i{wide})",
        f"declare i{wide} @llvm.umin.i{wide}(i{wide}, i{wide})",
        *(["declare i64 @llvm.umax.i64(i64, i64)", "declare i64 @llvm.umin.i64(i64, i64)"] if wide != 64 else []),
        f'define internal i64 @"{name}.share"(ptr %kernel, ptr %words, i64 %items, i64 %asked, ptr %scratch, '
        f"ptr %threads, i{wide} %count) noinline {{",
        "entry:",
        f"  %job = alloca {job}",
        f"  %several = icmp ugt i{wide} %count, 1",
        "  br i1 %several, label %divide, label %alone",
        "divide:",
        *widened,
        f"  %parts = mul i64 {count}, {CHUNKS_A_THREAD}",
        "  %part = udiv i64 %items, %parts",
        "  %unset = icmp eq i64 %asked, 0",
        "  %chosen = select i1 %unset, i64 %part, i64 %asked",
        "  %chunk = call i64 @llvm.umax.i64(i64 %chosen, i64 1)",
        "  %more = icmp ult i64 %chunk, %items",
        "  br i1 %more, label %shared, label %alone",
        "alone:",
        "  %status.alone = call i64 %kernel(ptr %words, i64 0, i64 %items, ptr %scratch)",
        "  ret i64 %status.alone",
        "shared:",
        "  %before = sub i64 %items, 1",
        "  %full = udiv i64 %before, %chunk",
        "  %chunks.wide = add i64 %full, 1",
        chunks,
        f"  %tasks = call i{wide} @llvm.umin.i{wide}(i{wide} %count, i{wide} %chunks)",
        *stores,
        "  %context = load ptr, ptr %threads",
        "  %for.field = getelementptr ptr, ptr %threads, i32 2",
        "  %for = load ptr, ptr %for.field",
        f'  call void %for(ptr %context, i{wide} %tasks, ptr @"{name}.task", ptr %job)',
        f"  %done = load atomic i{wide}, ptr %done.place acquire, align {wide // 8}",
        f"  %failed = load atomic i{wide}, ptr %failed.place monotonic, align {wide // 8}",
        f"  %bad = icmp ne i{wide} %failed, 0",
        f"  %whole = icmp eq i{wide} %done, %chunks",
        f"  %end = select i1 %whole, i64 0, i64 {UNFINISHED_STEP}",
        "  %status = select i1 %bad, i64 1, i64 %end",
        "  ret i64 %status",
        "}",
        f'define internal void @"{name}.task"(ptr %job, i{wide} %index) {{',
        "entry:",
        *loads,
        *(place(field) for field in fields[7:]),
        f"  %place = mul i{wide} %index, {stride}",
        f"  %own = getelementptr i8, ptr %scratch, i{wide} %place",
        f"  %named = icmp ult i{wide} %index, %tasks",
        "  br i1 %named, label %turn, label %return",
        "turn:",
        f"  %n = atomicrmw add ptr %next.place, i{wide} 1 monotonic",
        f"  %open = icmp ult i{wide} %n, %chunks",
        "  br i1 %open, label %run, label %return",
        "run:",
        number,
        "  %begin = mul i64 %n.wide, %chunk",
        "  %after = add i64 %begin, %chunk",
        "  %end = call i64 @llvm.umin.i64(i64 %after, i64 %items)",
        "  %status = call i64 %kernel(ptr %words, i64 %begin, i64 %end, ptr %own)",
        "  %good = icmp eq i64 %status, 0",
        "  br i1 %good, label %count.it, label %stop",
        "count.it:",
        f"  %ignored = atomicrmw add ptr %done.place, i{wide} 1 release",
        "  br label %turn",
        "stop:",
        f"  store atomic i{wide} 1, ptr %failed.place monotonic, align {wide // 8}",
        f"  store atomic i{wide} %chunks, ptr %next.place monotonic, align {wide // 8}",
        "  br label %return",
        "return:",
        "  ret void",
        "}",
    ]


def count_in_c(base: int, stride: int) -> list[str]:
    """Return statements that ask for the number of threads, `count`, and check the memory for it."""
    return f"""\
if (threads) {{
  if (!threads->thread_count || !threads->parallel_for) return {NO_MEMORY};
  count = threads->thread_count(threads->context);
  if (count < 1) count = 1;
  if (count > {MOST_THREADS}) count = {MOST_THREADS};
  if ((arena_size - {base}u) / {stride}u < count) return {ARENA_TOO_SMALL};
}}""".splitlines()


def share_in_c(name: str, stride: int) -> list[str]:
    """Return the function that runs a step on threads, and its task."""
    return f"""\
struct {name}_job {{
  int (*step)(const void *frame, int64_t begin, int64_t end, uint8_t *scratch);
  const void *frame;
  int64_t items, chunk;
  uint8_t *scratch;
  size_t tasks, chunks;
  atomic_size_t next, done;
  atomic_int status;
}};

static void {name}_task(void *work, size_t index) {{
  struct {name}_job *job = (struct {name}_job *)work;
  size_t n;
  if (index >= job->tasks) return;
  while ((n = atomic_fetch_add_explicit(&job->next, 1, memory_order_relaxed)) < job->chunks) {{
    int64_t begin = (int64_t)n * job->chunk;
    int64_t end = job->items - begin < job->chunk ? job->items : begin + job->chunk;
    int status = job->step(job->frame, begin, end, job->scratch + {stride}u * index);
    if (status) {{
      atomic_store_explicit(&job->status, status, memory_order_relaxed);
      atomic_store_explicit(&job->next, job->chunks, memory_order_relaxed);
      return;
    }}
    atomic_fetch_add_explicit(&job->done, 1, memory_order_release);
  }}
}}

static int {name}_share(int (*step)(const void *, int64_t, int64_t, uint8_t *), const void *frame, int64_t items,
                        int64_t chunk, uint8_t *scratch, const struct {name}_threads *threads, size_t count) {{
  struct {name}_job job;
  int status;
  if (!chunk) chunk = items / ({CHUNKS_A_THREAD} * (int64_t)count);
  if (chunk < 1) chunk = 1;
  if (count == 1 || chunk >= items) return step(frame, 0, items, scratch);
  job.step = step;
  job.frame = frame;
  job.items = items;
  job.chunk = chunk;
  job.scratch = scratch;
  job.chunks = (size_t)((items - 1) / chunk + 1);
  job.tasks = count < job.chunks ? count : job.chunks;
  atomic_init(&job.next, 0);
  atomic_init(&job.done, 0);
  atomic_init(&job.status, {OK});
  threads->parallel_for(threads->context, job.tasks, {name}_task, &job);
  status = atomic_load_explicit(&job.status, memory_order_relaxed);
  if (status) return status;
  return atomic_load_explicit(&job.done, memory_order_acquire) == job.chunks ? {OK} : {UNFINISHED};
}}
""".splitlines()
