/* A small run time around the provider: life cycles of one operator, natively, for valgrind and the sanitizers.

       life_cycles LIBRARY ENTRY OPTIONS CYCLES TYPE

   OPTIONS: bytes in hexadecimal, or -; TYPE: f or i, of the output. A cycle is init, prepare, two runs, a resize, prepare,
   a run, free; its input is two rows of three, then four numbers. Prints, after the last cycle, the three statuses of
   prepare and invoke (the first that is not 0 ends a cycle), the output's elements, and what was not given back.

   It is linked with the provider, whose names the library finds in it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "provider.h"

enum { INPUT = 0, OUTPUT = 1, TENSORS = 2, ROOM = TENSORS + 16 };

static const float FIRST[] = {-8.0f, 0.5f, 2.0f, 2.25f, 0.0f, -0.25f}, SECOND[] = {1.0f, 0.0f, 9.0f, 4.0f};

static TfLiteIntArray* array(int size, const int* values) {
  TfLiteIntArray* result = TfLiteIntArrayCreate(size);
  for (int i = 0; i < size; ++i) result->data[i] = values[i];
  return result;
}

/* Memory for what has a shape and is of the arena: exactly as much, so that tools see one byte too many. */
static void plan(TfLiteContext* context, void** arena) {
  for (size_t i = 1; i < context->tensors_size; ++i) {
    TfLiteTensor* t = context->tensors + i;
    if (t->allocation_type != kTfLiteArenaRw) continue;
    free(arena[i]);
    t->data.data = arena[i] = t->bytes == 0 ? NULL : malloc(t->bytes);
  }
}

static void set_input(TfLiteTensor* input, const float* values, size_t count, int rank, const int* shape, void** arena) {
  TfLiteIntArrayFree(input->dims);
  free(arena[INPUT]);
  input->dims = array(rank, shape);
  input->bytes = count * sizeof(float);
  input->data.data = arena[INPUT] = malloc(input->bytes);
  memcpy(input->data.data, values, input->bytes);
}

static void show(const TfLiteTensor* t) {
  int64_t count = 1;
  for (int i = 0; i < t->dims->size; ++i) count *= t->dims->data[i];
  printf("output");
  for (int64_t i = 0; i < count; ++i) {
    if (t->type == kTfLiteInt32) printf(" %d", t->data.i32[i]);
    else printf(" %.9g", (double)t->data.f[i]);
  }
  printf("\n");
}

static void cycle(const TfLiteRegistration* r, const char* options, size_t length, TfLiteType type, char* report,
                  int last) {
  OwHost host;
  TfLiteContext context;
  TfLiteTensor tensors[ROOM];
  TfLiteNode node;
  void* arena[ROOM] = {NULL};
  const int one[] = {INPUT}, two[] = {OUTPUT}, wide[] = {2, 3}, narrow[] = {4};
  int statuses[5] = {0, 0, 0, 0, 0};
  memset(&host, 0, sizeof host), memset(&context, 0, sizeof context);
  memset(tensors, 0, sizeof tensors), memset(&node, 0, sizeof node);
  host.tensors_capacity = ROOM, host.report = report, host.report_size = 1024, report[0] = 0;
  context.tensors = tensors, context.tensors_size = TENSORS;
  ow_context_init(&context, &host);
  node.inputs = array(1, one), node.outputs = array(1, two);
  node.temporaries = array(0, NULL), node.intermediates = array(0, NULL);
  tensors[INPUT].name = "x", tensors[INPUT].type = kTfLiteFloat32, tensors[INPUT].allocation_type = kTfLiteArenaRw;
  tensors[OUTPUT].name = "y", tensors[OUTPUT].type = type, tensors[OUTPUT].allocation_type = kTfLiteArenaRw;
  tensors[OUTPUT].dims = array(0, NULL);
  set_input(tensors + INPUT, FIRST, 6, 2, wide, arena);

  node.user_data = ow_init(r, &context, options, length);
  if (node.user_data != TfLiteKernelInitFailed()) {
    statuses[0] = ow_prepare(r, &context, &node);
    if (statuses[0] == kTfLiteOk) {
      plan(&context, arena);
      for (int run = 1; run <= 2; ++run) statuses[run] = ow_invoke(r, &context, &node);
    }
    set_input(tensors + INPUT, SECOND, 4, 1, narrow, arena);
    statuses[3] = ow_prepare(r, &context, &node);
    if (statuses[3] == kTfLiteOk) {
      plan(&context, arena);
      statuses[4] = ow_invoke(r, &context, &node);
    }
    ow_free(r, &context, node.user_data);
  }
  if (last) {
    printf("statuses %d %d %d %d %d\n", statuses[0], statuses[1], statuses[2], statuses[3], statuses[4]);
    printf("report %s\n", report);
    if (statuses[3] == kTfLiteOk && statuses[4] == kTfLiteOk && node.user_data != TfLiteKernelInitFailed()) {
      show(tensors + OUTPUT);
    }
  }
  TfLiteIntArrayFree(node.inputs), TfLiteIntArrayFree(node.outputs);
  TfLiteIntArrayFree(node.temporaries), TfLiteIntArrayFree(node.intermediates);
  for (size_t i = 0; i < context.tensors_size; ++i) {
    free(arena[i]);
    TfLiteTensorFree(tensors + i);
  }
}

static size_t from_hexadecimal(const char* text, char** bytes) {
  size_t length = strcmp(text, "-") == 0 ? 0 : strlen(text) / 2;
  *bytes = length == 0 ? NULL : malloc(length);
  for (size_t i = 0; i < length; ++i) {
    unsigned value;
    if (sscanf(text + 2 * i, "%2x", &value) != 1) exit(2);
    (*bytes)[i] = (char)value;
  }
  return length;
}

int main(int argc, char** argv) {
  static char report[1024], buffer[256];
  if (argc != 6) return 2;
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  void* entry = library == NULL ? NULL : dlsym(library, argv[2]);
  if (entry == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  TfLiteRegistration registration;
  void* result;
  if (ow_call_by_value(entry, buffer, &result)) {
    memcpy(&registration, buffer, sizeof registration);
  } else if (ow_is_operator(result)) {
    ow_operator_registration(result, &registration);
  } else {
    memcpy(&registration, result, sizeof registration);
  }
  char* options;
  size_t length = from_hexadecimal(argv[3], &options);
  int cycles = atoi(argv[4]);
  int64_t before = ow_blocks();
  for (int i = 0; i < cycles; ++i) {
    cycle(&registration, options, length, argv[5][0] == 'i' ? kTfLiteInt32 : kTfLiteFloat32, report, i == cycles - 1);
  }
  printf("kept %" PRId64 "\n", ow_blocks() - before);
  free(options);
  dlclose(library);
  return 0;
}
