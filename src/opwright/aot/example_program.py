"""The example of a library: a C program that reads inputs from files, runs the model and prints its outputs.

Lives here: `example_of`. Not here: the header that it includes (c_files.py).

It maps weights that are a file, and provides threads to a library that takes them, where the system has POSIX threads.
"""

from __future__ import annotations

from .c_files import C_TYPES
from .memory_layouts import MemoryLayout
from .model_plans import ModelPlan


def example_of(model: ModelPlan, name: str, layout: MemoryLayout) -> str:
    """Return a program that reads the inputs' bytes from files, runs the first signature and prints the first
    elements."""
    big, signature = name.upper(), model.signatures[0]
    prefix = model.prefix(signature, name)
    about = "reads the elements of each input from a file, zeros without one."
    lines = [f"/* An example: {name} INPUT ... {about} */"]
    if layout.apart or layout.stride:
        includes = [*_WEIGHTS_INCLUDES * layout.apart, *_THREADS_INCLUDES * bool(layout.stride)]
        posix = "#define _POSIX_C_SOURCE 200112L"
        lines += ["#if defined(__unix__) || defined(__APPLE__)", posix, *sorted(includes), "#endif", ""]
    lines += [f'#include "{name}.h"', "", "#include <stdio.h>", "#include <stdlib.h>", ""]
    arena_size = f"{big}_ARENA_SIZE_FOR(THREADS)" if layout.stride else f"{big}_ARENA_SIZE"
    lines += [*_THREADS, ""] if layout.stride else []
    lines.append(f"static uint8_t memory[{arena_size} + {big}_ARENA_ALIGN];")
    both = (*signature.inputs, *signature.outputs)
    lines += [
        f"static {C_TYPES[t.dtype]} {t.identifier}[{prefix.upper()}_{t.identifier.upper()}_SIZE + 1u];" for t in both
    ]
    if model.state:
        lines.append(f"static struct {name}_state state;")
    lines += ["", *_READ_FILE, *(_MAP_FILE.replace("BIG", big).splitlines() if layout.apart else [])]
    lines += [
        "",
        "int main(int argc, char **argv) {",
        f"  struct {prefix}_inputs inputs;",
        f"  struct {prefix}_outputs outputs;",
        *([f"  struct {name}_weights weights;"] if layout.apart else []),
        *([f"  struct {name}_threads threads = {{NULL, thread_count, parallel_for}};"] if layout.stride else []),
        f"  uintptr_t arena = ((uintptr_t)memory + {big}_ARENA_ALIGN - 1u) / {big}_ARENA_ALIGN * {big}_ARENA_ALIGN;",
        "  int status;",
        "  size_t i;",
    ]
    if layout.apart:
        lines += [
            "  const void *file = map_file(&i);",
            f"  status = {name}_map_weights(file, i, &weights);",
            "  if (status) {",
            f'    fprintf(stderr, "%s: status %d\\n", {big}_WEIGHTS_FILE, status);',
            "    return EXIT_FAILURE;",
            "  }",
        ]
    for what, tensors in (("inputs", signature.inputs), ("outputs", signature.outputs)):
        lines += [f"  {what}.{t.identifier} = {t.identifier};" for t in tensors] or [f"  {what}.unused = NULL;"]
    lines += [f"  inputs.{p.identifier} = {prefix.upper()}_{p.identifier.upper()}_MAX;" for p in signature.stated]
    for i, t in enumerate(signature.inputs):
        size = f"sizeof(*{t.identifier}) * {prefix.upper()}_{t.identifier.upper()}_SIZE"
        lines += [
            f"  if (argc > {i + 1} && !read_file(argv[{i + 1}], {t.identifier}, {size})) {{",
            f'    fprintf(stderr, "cannot read %s\\n", argv[{i + 1}]);',
            "    return EXIT_FAILURE;",
            "  }",
        ]
    if not signature.inputs:
        lines += ["  (void)argc;", "  (void)argv;", "  (void)read_file;"]
    weights = ("&weights, " if layout.apart else "") + ("&threads, " if layout.stride else "")
    more = ("&state, " if model.state else "") + weights
    if layout.stride:
        lines += [
            "  if (!start_threads()) {",
            '    fprintf(stderr, "no threads\\n");',
            "    return EXIT_FAILURE;",
            "  }",
        ]
    lines += [
        *([f"  {name}_reset(&state{', &weights' if layout.apart else ''});"] if model.state else []),
        f"  status = {model.symbol(signature, name)}(&inputs, &outputs, {more}(void *)arena, {arena_size});",
        "  if (status) {",
        '    fprintf(stderr, "status %d\\n", status);',
        "    return EXIT_FAILURE;",
        "  }",
    ]
    for t in signature.outputs:
        lines += [
            f'  printf("{t.identifier}");',
            f"  for (i = 0; i < {prefix.upper()}_{t.identifier.upper()}_SIZE && i < 10u; i++) {{",
            f'    printf(" %.9g", (double){t.identifier}[i]);',
            "  }",
            '  printf("\\n");',
        ]
    return "\n".join([*lines, "  return EXIT_SUCCESS;", "}"]) + "\n"


_READ_FILE = """\
static int read_file(const char *path, void *into, size_t size) {
  FILE *file = fopen(path, "rb");
  size_t done = file ? fread(into, 1, size, file) : 0;
  if (file) fclose(file);
  return done == size;
}""".splitlines()
_WEIGHTS_INCLUDES = [f"#include <{name}.h>" for name in ("fcntl", "sys/mman", "sys/stat", "unistd")]
_THREADS_INCLUDES = ["#include <pthread.h>"]
_THREADS = """
#if defined(__unix__) || defined(__APPLE__)
enum { THREADS = 4 }; /* the main thread among them */

static struct {
  pthread_mutex_t lock;
  pthread_cond_t work, done;
  void (*task)(void *, size_t);
  void *argument;
  size_t count, next, open;
} pool = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, NULL, 0, 0, 0};

/* Calls the task with each index that no other thread has taken. With the lock. */
static void take_tasks(void) {
  while (pool.next < pool.count) {
    size_t index = pool.next++;
    pthread_mutex_unlock(&pool.lock);
    pool.task(pool.argument, index);
    pthread_mutex_lock(&pool.lock);
    if (--pool.open == 0) pthread_cond_signal(&pool.done);
  }
}

static void *serve(void *unused) {
  pthread_mutex_lock(&pool.lock);
  for (;;) {
    take_tasks();
    pthread_cond_wait(&pool.work, &pool.lock);
  }
  return unused;
}

static void parallel_for(void *context, size_t count, void (*task)(void *, size_t), void *argument) {
  (void)context;
  pthread_mutex_lock(&pool.lock);
  pool.task = task;
  pool.argument = argument;
  pool.count = pool.open = count;
  pool.next = 0;
  pthread_cond_broadcast(&pool.work);
  take_tasks();
  while (pool.open) pthread_cond_wait(&pool.done, &pool.lock);
  pthread_mutex_unlock(&pool.lock);
}

static int start_threads(void) {
  pthread_t thread;
  int i;
  for (i = 1; i < THREADS; i++)
    if (pthread_create(&thread, NULL, serve, NULL)) return 0;
  return 1;
}
#else
enum { THREADS = 1 };
static void parallel_for(void *context, size_t count, void (*task)(void *, size_t), void *argument) {
  size_t i;
  (void)context;
  for (i = 0; i < count; i++) task(argument, i);
}
static int start_threads(void) { return 1; }
#endif

static size_t thread_count(void *context) {
  (void)context;
  return THREADS;
}""".splitlines()
_MAP_FILE = """
/* Returns the weights: mapped read-only, or read where a system has no mmap; NULL without the file. */
static const void *map_file(size_t *size) {
#if defined(__unix__) || defined(__APPLE__)
  struct stat facts;
  void *address = MAP_FAILED;
  int file = open(BIG_WEIGHTS_FILE, O_RDONLY);
  *size = 0;
  if (file < 0) return NULL;
  if (fstat(file, &facts) == 0 && facts.st_size > 0) {
    *size = (size_t)facts.st_size;
    address = mmap(NULL, *size, PROT_READ, MAP_PRIVATE, file, 0);
  }
  close(file);
  return address == MAP_FAILED ? NULL : address;
#else
  static uint8_t content[BIG_WEIGHTS_SIZE + BIG_WEIGHTS_ALIGN];
  uint8_t *address = content + (BIG_WEIGHTS_ALIGN - (uintptr_t)content % BIG_WEIGHTS_ALIGN);
  *size = BIG_WEIGHTS_SIZE;
  return read_file(BIG_WEIGHTS_FILE, address, *size) ? address : NULL;
#endif
}"""
