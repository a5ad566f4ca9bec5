/* Operators that note what is done with them, for the tests of their life cycle; and some that do what they must not. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tensorflow/lite/c/c_api.h"
#include "tensorflow/lite/c/c_api_opaque.h"
#include "tensorflow/lite/c/common.h"

/* --- what happened, for Python to read --------------------------------------------------------------------------- */

enum { INIT = 1, PREPARE, INVOKE, FREE };
typedef struct {
  long what;
  const void *state, *node, *pointer; /* pointer: options in init, the input's data else */
  long value;                         /* bytes of the options; of the input, its first size in prepare, its bytes in invoke */
} Event;
Event events[4096];
int events_used;

static void note(int what, const void* state, const void* node, const void* pointer, long value) {
  if (events_used < 4096) events[events_used++] = (Event){what, state, node, pointer, value};
}

#define IN(i) (&context->tensors[node->inputs->data[i]])
#define OUT(i) (&context->tensors[node->outputs->data[i]])
#define OPERATOR(NAME, init, release, prepare, invoke)                    \
  TfLiteRegistration* Register_##NAME(void) {                             \
    static TfLiteRegistration r = {init, release, prepare, invoke};       \
    return &r;                                                            \
  }

static char copied[256]; /* the options of the last init */
const char* last_options(void) { return copied; }

static void* init(TfLiteContext* context, const char* buffer, size_t length) {
  void* state = malloc(8);
  if (length <= sizeof copied && buffer != NULL) memcpy(copied, buffer, length);
  note(INIT, state, NULL, buffer, (long)length);
  return state;
}
static void* init_null(TfLiteContext* context, const char* buffer, size_t length) {
  note(INIT, NULL, NULL, buffer, (long)length);
  return NULL;
}
static void* init_fails(TfLiteContext* context, const char* buffer, size_t length) {
  context->ReportError(context, "no device %d", 7);
  return (void*)-1;
}
static void release(TfLiteContext* context, void* state) {
  note(FREE, state, NULL, NULL, 0);
  free(state);
}
static TfLiteStatus same_shape(TfLiteContext* context, TfLiteNode* node) {
  return context->ResizeTensor(context, OUT(0), TfLiteIntArrayCopy(IN(0)->dims));
}
static TfLiteStatus prepare(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor* x = IN(0);
  note(PREPARE, node->user_data, node, x->data.raw, x->dims->size ? x->dims->data[0] : 0);
  return same_shape(context, node);
}
static TfLiteStatus add_one(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor* x = IN(0);
  note(INVOKE, node->user_data, node, x->data.raw, (long)x->bytes);
  for (size_t i = 0; i < x->bytes / 4; ++i) OUT(0)->data.f[i] = x->data.f[i] + 1.0f;
  return kTfLiteOk;
}
OPERATOR(PROBE, init, release, prepare, add_one)
OPERATOR(PROBE_NULL, init_null, release, prepare, add_one)
OPERATOR(FAIL_INIT, init_fails, release, prepare, add_one)

static TfLiteStatus prepare_fails(TfLiteContext* context, TfLiteNode* node) {
  note(PREPARE, node->user_data, node, NULL, 0);
  TF_LITE_ENSURE_EQ(context, IN(0)->dims->size, 7);
  return kTfLiteOk;
}
OPERATOR(FAIL_PREPARE, init, release, prepare_fails, add_one)

static TfLiteStatus invoke_fails(TfLiteContext* context, TfLiteNode* node) {
  if (IN(0)->data.f[0] < 0) {
    context->ReportError(context, "x[0] is %.1f, below %s", IN(0)->data.f[0], "zero");
    return kTfLiteError;
  }
  context->ReportError(context, "nothing is wrong"); /* what succeeds reports in vain */
  return add_one(context, node);
}
OPERATOR(FAIL_INVOKE, init, release, prepare, invoke_fails)

static TfLiteStatus cancels(TfLiteContext* context, TfLiteNode* node) { return kTfLiteCancelled; }
OPERATOR(CANCEL, NULL, NULL, same_shape, cancels)
static TfLiteStatus status_42(TfLiteContext* context, TfLiteNode* node) { return (TfLiteStatus)42; }
OPERATOR(STATUS_42, NULL, NULL, same_shape, status_42)
static TfLiteStatus nothing(TfLiteContext* context, TfLiteNode* node) { return kTfLiteOk; }
OPERATOR(QUICK, NULL, NULL, same_shape, nothing)
static TfLiteStatus sleeps(TfLiteContext* context, TfLiteNode* node) {
  usleep(300000);
  return kTfLiteOk;
}
OPERATOR(SLEEPS, NULL, NULL, same_shape, sleeps)

/* --- memory ------------------------------------------------------------------------------------------------------ */

/* y = 0, 1, ... n-1 for n = x[0]: the shape follows from a value. */
static TfLiteStatus dynamic_prepare(TfLiteContext* context, TfLiteNode* node) {
  note(PREPARE, node->user_data, node, NULL, 0);
  OUT(0)->allocation_type = kTfLiteDynamic;
  return kTfLiteOk;
}
static TfLiteStatus resize_1d(TfLiteContext* context, TfLiteTensor* tensor, int size) {
  TfLiteIntArray* shape = TfLiteIntArrayCreate(1);
  shape->data[0] = size;
  return context->ResizeTensor(context, tensor, shape);
}
static TfLiteStatus count_up(TfLiteContext* context, TfLiteNode* node) {
  int n = (int)IN(0)->data.f[0];
  note(INVOKE, node->user_data, node, NULL, n);
  TF_LITE_ENSURE_OK(context, resize_1d(context, OUT(0), n));
  for (int i = 0; i < n; ++i) OUT(0)->data.f[i] = (float)i;
  return kTfLiteOk;
}
OPERATOR(COUNT_UP, init, release, dynamic_prepare, count_up)

/* The same, through the memory of a dynamic tensor that the operator itself makes larger. */
static TfLiteStatus count_up_realloc(TfLiteContext* context, TfLiteNode* node) {
  int n = (int)IN(0)->data.f[0];
  TF_LITE_ENSURE_OK(context, resize_1d(context, OUT(0), n));
  TfLiteTensorRealloc((size_t)n * 8 + 4, OUT(0));
  for (int i = 0; i < n; ++i) OUT(0)->data.f[i] = (float)i;
  return kTfLiteOk;
}
OPERATOR(COUNT_UP_REALLOC, NULL, NULL, dynamic_prepare, count_up_realloc)

static TfLiteStatus shape_not_known(TfLiteContext* context, TfLiteNode* node) { return kTfLiteOutputShapeNotKnown; }
OPERATOR(COUNT_UP_LATER, NULL, NULL, shape_not_known, count_up)

/* y = x reversed, by way of a temporary in the arena, added once. */
typedef struct {
  int index, prepared;
} Scratch;
static void* scratch_init(TfLiteContext* context, const char* buffer, size_t length) {
  Scratch* s = calloc(1, sizeof *s);
  context->AddTensors(context, 1, &s->index);
  return s;
}
static void scratch_free(TfLiteContext* context, void* state) { free(state); }
static TfLiteStatus scratch_prepare_as(TfLiteContext* context, TfLiteNode* node, TfLiteAllocationType kind) {
  Scratch* s = node->user_data;
  TfLiteIntArrayFree(node->temporaries);
  node->temporaries = TfLiteIntArrayCreate(1);
  node->temporaries->data[0] = s->index;
  TfLiteTensor* t = &context->tensors[s->index];
  t->type = kTfLiteFloat32;
  t->allocation_type = kind;
  TF_LITE_ENSURE_OK(context, context->ResizeTensor(context, t, TfLiteIntArrayCopy(IN(0)->dims)));
  note(PREPARE, s, node, NULL, s->index);
  return same_shape(context, node);
}
static TfLiteStatus scratch_prepare(TfLiteContext* context, TfLiteNode* node) {
  return scratch_prepare_as(context, node, kTfLiteArenaRw);
}
static TfLiteStatus scratch_prepare_dynamic(TfLiteContext* context, TfLiteNode* node) {
  return scratch_prepare_as(context, node, kTfLiteDynamic);
}
static TfLiteStatus reverse(TfLiteContext* context, TfLiteNode* node) {
  Scratch* s = node->user_data;
  TfLiteTensor* t = &context->tensors[s->index];
  size_t n = IN(0)->bytes / 4;
  note(INVOKE, s, node, t->data.raw, (long)t->bytes);
  TF_LITE_ENSURE(context, t->data.raw != NULL || n == 0);
  TF_LITE_ENSURE_EQ(context, t->bytes, IN(0)->bytes);
  for (size_t i = 0; i < n; ++i) t->data.f[i] = IN(0)->data.f[n - 1 - i];
  memcpy(OUT(0)->data.f, t->data.f, n * 4);
  return kTfLiteOk;
}
static TfLiteStatus reverse_resizing(TfLiteContext* context, TfLiteNode* node) {
  Scratch* s = node->user_data;
  TF_LITE_ENSURE_OK(context, resize_1d(context, &context->tensors[s->index], 1000));
  memset(context->tensors[s->index].data.raw, 1, 4000);
  TF_LITE_ENSURE_OK(context, resize_1d(context, &context->tensors[s->index], (int)IN(0)->bytes / 4));
  return reverse(context, node);
}
static TfLiteStatus scratch_prepare_once(TfLiteContext* context, TfLiteNode* node) {
  Scratch* s = node->user_data;
  TfLiteTensor* t = &context->tensors[s->index];
  if (s->prepared++ == 0) {
    TfLiteIntArrayFree(node->temporaries);
    node->temporaries = TfLiteIntArrayCreate(1);
    node->temporaries->data[0] = s->index;
    t->type = kTfLiteFloat32, t->allocation_type = kTfLiteDynamic;
    TF_LITE_ENSURE_OK(context, resize_1d(context, t, 100));
  }
  return same_shape(context, node);
}
static TfLiteStatus reverse_roomy(TfLiteContext* context, TfLiteNode* node) {
  TfLiteTensor* t = &context->tensors[((Scratch*)node->user_data)->index];
  size_t n = IN(0)->bytes / 4;
  TF_LITE_ENSURE(context, t->data.raw != NULL && t->bytes == 400);
  for (size_t i = 0; i < n; ++i) t->data.f[i] = IN(0)->data.f[n - 1 - i];
  memcpy(OUT(0)->data.f, t->data.f, n * 4);
  return kTfLiteOk;
}
OPERATOR(REVERSE_ROOMY, scratch_init, scratch_free, scratch_prepare_once, reverse_roomy)
OPERATOR(REVERSE, scratch_init, scratch_free, scratch_prepare, reverse)
OPERATOR(REVERSE_DYNAMIC, scratch_init, scratch_free, scratch_prepare_dynamic, reverse_resizing)

/* y = how often this ran, kept in a persistent tensor. */
static TfLiteStatus counting_prepare(TfLiteContext* context, TfLiteNode* node) {
  Scratch* s = node->user_data;
  TfLiteTensor* t = &context->tensors[s->index];
  TfLiteIntArrayFree(node->temporaries);
  node->temporaries = TfLiteIntArrayCreate(1);
  node->temporaries->data[0] = s->index;
  t->type = kTfLiteFloat32;
  t->allocation_type = kTfLiteArenaRwPersistent;
  TF_LITE_ENSURE_OK(context, resize_1d(context, t, 1));
  s->prepared++;
  return same_shape(context, node);
}
static TfLiteStatus counting(TfLiteContext* context, TfLiteNode* node) {
  Scratch* s = node->user_data;
  float* kept = context->tensors[s->index].data.f;
  if (s->prepared == 1) kept[0] = 0, s->prepared = 100;
  kept[0] += 1;
  for (size_t i = 0; i < OUT(0)->bytes / 4; ++i) OUT(0)->data.f[i] = kept[0];
  return kTfLiteOk;
}
OPERATOR(COUNTING, scratch_init, scratch_free, counting_prepare, counting)

/* Adds sixteen tensors in one prepare while it holds pointers to the first ones. */
static TfLiteStatus adds_many(TfLiteContext* context, TfLiteNode* node) {
  TfLiteTensor *x = IN(0), *before = context->tensors;
  int first = -1;
  if (node->user_data != NULL && ((Scratch*)node->user_data)->prepared++ == 0) {
    TF_LITE_ENSURE_OK(context, context->AddTensors(context, 16, &first));
    TF_LITE_ENSURE(context, before == context->tensors && x == IN(0));
  }
  return same_shape(context, node);
}
OPERATOR(ADDS_MANY, scratch_init, scratch_free, adds_many, add_one)

/* state += x, y = state: a variable as the second input. */
static TfLiteStatus accumulate(TfLiteContext* context, TfLiteNode* node) {
  TF_LITE_ENSURE(context, IN(1)->is_variable);
  for (size_t i = 0; i < IN(0)->bytes / 4; ++i) OUT(0)->data.f[i] = IN(1)->data.f[i] += IN(0)->data.f[i];
  return kTfLiteOk;
}
OPERATOR(ACCUMULATE, NULL, NULL, same_shape, accumulate)

/* y = x + b, or x where b is left out. */
static TfLiteStatus add_optional(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor* b = node->inputs->data[1] < 0 ? NULL : IN(1);
  for (size_t i = 0; i < IN(0)->bytes / 4; ++i) OUT(0)->data.f[i] = IN(0)->data.f[i] + (b ? b->data.f[i] : 0.0f);
  return kTfLiteOk;
}
OPERATOR(ADD_OPTIONAL, NULL, NULL, same_shape, add_optional)

/* --- what tensors and contexts say: y[0..] = facts ---------------------------------------------------------------- */

static TfLiteStatus twelve(TfLiteContext* context, TfLiteNode* node) { return resize_1d(context, OUT(0), 12); }
static TfLiteStatus quantization(TfLiteContext* context, TfLiteNode* node) {
  const TfLiteTensor* x = IN(0);
  float* y = OUT(0)->data.f;
  memset(y, 0, 48);
  y[0] = (float)x->type, y[1] = x->params.scale, y[2] = (float)x->params.zero_point, y[3] = (float)x->quantization.type;
  if (x->quantization.type == kTfLiteAffineQuantization) {
    const TfLiteAffineQuantization* q = x->quantization.params;
    y[4] = (float)q->scale->size, y[5] = q->scale->data[q->scale->size - 1];
    y[6] = (float)q->zero_point->size, y[7] = (float)q->zero_point->data[0], y[8] = (float)q->quantized_dimension;
  }
  y[9] = (float)x->allocation_type, y[10] = (float)(x->dims_signature ? x->dims_signature->size : -1);
  y[11] = x->dims_signature && x->dims_signature->size ? (float)x->dims_signature->data[0] : 0;
  return kTfLiteOk;
}
OPERATOR(QUANTIZATION, NULL, NULL, twelve, quantization)

static TfLiteStatus facts(TfLiteContext* context, TfLiteNode* node) {
  float* y = OUT(0)->data.f;
  const char* bytes = NULL;
  size_t size = 0;
  memset(y, 0, 48);
  y[0] = (float)context->recommended_num_threads, y[1] = (float)context->tensors_size;
  y[2] = context->GetExternalContext(context, kTfLiteCpuBackendContext) != NULL &&
         context->GetExternalContext(context, kTfLiteGemmLowpContext) == NULL;
  y[3] = context->AllocatePersistentBuffer == NULL && context->RequestScratchBufferInArena == NULL;
  y[4] = context->GetTensor == NULL && context->GetEvalTensor == NULL;
  y[5] = context->GetModelMetadata(context, "note", &bytes, &size) == kTfLiteOk && size == 5 && !memcmp(bytes, "hello", 5);
  y[6] = context->GetModelMetadata(context, "absent", &bytes, &size) != kTfLiteOk;
  y[7] = IN(0)->sparsity == NULL, y[8] = (float)IN(0)->buffer_handle, y[9] = !strcmp(IN(0)->name, "x");
  y[10] = node->custom_initial_data != NULL && node->custom_initial_data_size > 0;
  y[11] = node->builtin_data == NULL && node->delegate == NULL;
  return kTfLiteOk;
}
OPERATOR(FACTS, NULL, NULL, twelve, facts)

/* y = x in capitals: strings, how many there are the input says. */
static TfLiteStatus upper(TfLiteContext* context, TfLiteNode* node) {
  const char* raw = IN(0)->data.raw_const;
  const int32_t* head = (const int32_t*)raw;
  int n = head[0];
  int32_t* lengths = calloc((size_t)n + 1, 4);
  char* all = malloc((size_t)head[n + 1] + 1);
  const char** each = calloc((size_t)n + 1, sizeof *each);
  for (int i = 0; i < n; ++i) {
    lengths[i] = head[i + 2] - head[i + 1];
    char* to = all + head[i + 1] - head[1];
    for (int k = 0; k < lengths[i]; ++k) {
      char c = raw[head[i + 1] + k];
      to[k] = c >= 'a' && c <= 'z' ? (char)(c - 32) : c;
    }
    each[i] = to;
  }
  TfLiteStatus status = resize_1d(context, OUT(0), n);
  if (status == kTfLiteOk) status = TfLiteOpaqueTensorWriteStrings((TfLiteOpaqueTensor*)OUT(0), each, n, lengths);
  free(lengths), free(all), free(each);
  return status;
}
OPERATOR(UPPER, NULL, NULL, nothing, upper)

/* y = x for int4, as bytes of two: swaps the halves. */
static TfLiteStatus swap_halves(TfLiteContext* context, TfLiteNode* node) {
  TF_LITE_ENSURE_EQ(context, IN(0)->type, kTfLiteInt4);
  for (size_t i = 0; i < IN(0)->bytes; ++i) {
    uint8_t b = IN(0)->data.uint8[i];
    OUT(0)->data.uint8[i] = (uint8_t)(b << 4 | b >> 4);
  }
  return kTfLiteOk;
}
OPERATOR(SWAP_HALVES, NULL, NULL, same_shape, swap_halves)

/* --- what must not be -------------------------------------------------------------------------------------------- */

static TfLiteStatus negative(TfLiteContext* context, TfLiteNode* node) { return resize_1d(context, OUT(0), -3); }
OPERATOR(NEGATIVE, NULL, NULL, negative, nothing)
static TfLiteStatus null_shape(TfLiteContext* context, TfLiteNode* node) {
  return context->ResizeTensor(context, OUT(0), NULL);
}
OPERATOR(NULL_SHAPE, NULL, NULL, null_shape, nothing)
static TfLiteStatus huge(TfLiteContext* context, TfLiteNode* node) {
  TfLiteIntArray* shape = TfLiteIntArrayCreate(3);
  shape->data[0] = shape->data[1] = shape->data[2] = 2000000000;
  return context->ResizeTensor(context, OUT(0), shape);
}
OPERATOR(HUGE, NULL, NULL, huge, nothing)
static TfLiteStatus wild_rank(TfLiteContext* context, TfLiteNode* node) {
  TfLiteIntArray* shape = TfLiteIntArrayCreate(2);
  shape->size = 123456789;
  return context->ResizeTensor(context, OUT(0), shape);
}
OPERATOR(WILD_RANK, NULL, NULL, wild_rank, nothing)
static TfLiteStatus resize_constant(TfLiteContext* context, TfLiteNode* node) {
  return resize_1d(context, IN(1), 3);
}
OPERATOR(RESIZE_CONSTANT, NULL, NULL, resize_constant, nothing)
static TfLiteStatus resize_input(TfLiteContext* context, TfLiteNode* node) { return resize_1d(context, IN(0), 3); }
OPERATOR(RESIZE_INPUT, NULL, NULL, resize_input, nothing)
static TfLiteStatus resize_late(TfLiteContext* context, TfLiteNode* node) {
  return resize_1d(context, OUT(0), (int)IN(0)->data.f[0]);
}
OPERATOR(RESIZE_LATE, NULL, NULL, same_shape, resize_late)
static TfLiteStatus ignores(TfLiteContext* context, TfLiteNode* node) {
  (void)resize_1d(context, OUT(0), -1); /* and goes on */
  return kTfLiteOk;
}
OPERATOR(IGNORES, NULL, NULL, ignores, nothing)
OPERATOR(IGNORES_LATE, NULL, NULL, same_shape, ignores)
static TfLiteStatus bad_temporaries(TfLiteContext* context, TfLiteNode* node) {
  TfLiteIntArrayFree(node->temporaries);
  node->temporaries = TfLiteIntArrayCreate(2);
  node->temporaries->data[0] = 99, node->temporaries->data[1] = -5;
  return same_shape(context, node);
}
OPERATOR(BAD_TEMPORARIES, NULL, NULL, bad_temporaries, nothing)
static TfLiteStatus foreign_tensor(TfLiteContext* context, TfLiteNode* node) {
  TfLiteTensor mine = *OUT(0);
  return context->ResizeTensor(context, &mine, TfLiteIntArrayCopy(IN(0)->dims));
}
OPERATOR(FOREIGN_TENSOR, NULL, NULL, foreign_tensor, nothing)
/* As a library finds an output whose headers have a smaller TfLiteTensor. */
static TfLiteStatus smaller_tensors(TfLiteContext* context, TfLiteNode* node) {
  char* array = (char*)context->tensors;
  TfLiteTensor* y = (TfLiteTensor*)(void*)(array + node->outputs->data[0] * 104);
  return context->ResizeTensor(context, y, TfLiteIntArrayCopy(context->tensors[0].dims));
}
OPERATOR(SMALLER_TENSORS, NULL, NULL, smaller_tensors, nothing)
static TfLiteStatus wrong_type(TfLiteContext* context, TfLiteNode* node) {
  OUT(0)->type = (TfLiteType)77;
  return kTfLiteOk;
}
OPERATOR(WRONG_TYPE, NULL, NULL, wrong_type, nothing)
static TfLiteStatus wrong_memory(TfLiteContext* context, TfLiteNode* node) {
  OUT(0)->allocation_type = kTfLiteNonCpu;
  return kTfLiteOk;
}
OPERATOR(WRONG_MEMORY, NULL, NULL, wrong_memory, nothing)
static TfLiteStatus in_place(TfLiteContext* context, TfLiteNode* node) {
  OUT(0)->dims->data[0] = 2;
  return kTfLiteOk;
}
OPERATOR(IN_PLACE, NULL, NULL, in_place, nothing)
static TfLiteStatus adds_endlessly(TfLiteContext* context, TfLiteNode* node) {
  int first;
  return context->AddTensors(context, 1 << 30, &first);
}
OPERATOR(ADDS_ENDLESSLY, NULL, NULL, adds_endlessly, nothing)

static TfLiteStatus adds_fewer_than_none(TfLiteContext* context, TfLiteNode* node) {
  int first = 0;
  (void)node;
  return context->AddTensors(context, -1, &first);
}
OPERATOR(ADDS_FEWER_THAN_NONE, NULL, NULL, adds_fewer_than_none, nothing)
static TfLiteStatus untyped(TfLiteContext* context, TfLiteNode* node) {
  int first;
  TF_LITE_ENSURE_OK(context, context->AddTensors(context, 1, &first));
  return resize_1d(context, &context->tensors[first], 3);
}
OPERATOR(UNTYPED, NULL, NULL, untyped, nothing)
static TfLiteStatus few_strings(TfLiteContext* context, TfLiteNode* node) {
  const char* one[] = {"one"};
  int length[] = {3};
  TF_LITE_ENSURE_OK(context, resize_1d(context, OUT(0), 4));
  TfLiteOpaqueTensorWriteStrings((TfLiteOpaqueTensor*)OUT(0), one, 1, length);
  TfLiteIntArrayFree(OUT(0)->dims);
  OUT(0)->dims = TfLiteIntArrayCreate(1);
  OUT(0)->dims->data[0] = 4;
  return kTfLiteOk;
}
OPERATOR(FEW_STRINGS, NULL, NULL, nothing, few_strings)
static TfLiteStatus writes_input(TfLiteContext* context, TfLiteNode* node) {
  IN(0)->data.f[0] = 77;
  return kTfLiteOk;
}
OPERATOR(WRITES_INPUT, NULL, NULL, same_shape, writes_input)
static TfLiteStatus others_dims(TfLiteContext* context, TfLiteNode* node) {
  return context->ResizeTensor(context, OUT(0), IN(0)->dims);
}
OPERATOR(OTHERS_DIMS, NULL, NULL, others_dims, nothing)
static TfLiteStatus no_outputs(TfLiteContext* context, TfLiteNode* node) {
  TfLiteIntArrayFree(node->outputs);
  node->outputs = NULL;
  return kTfLiteOk;
}
OPERATOR(NO_OUTPUTS, NULL, NULL, no_outputs, nothing)
static TfLiteStatus far_tensor(TfLiteContext* context, TfLiteNode* node) {
  (void)TfLiteOpaqueContextGetOpaqueTensor((TfLiteOpaqueContext*)context, 1000000000);
  return kTfLiteOk;
}
OPERATOR(FAR_TENSOR, NULL, NULL, far_tensor, nothing)

/* In invoke, what the rest of the graph relies on; for inputs above 0, so that it can be asked to do without. */
#define CHANGES(NAME, statement)                                             \
  static TfLiteStatus NAME(TfLiteContext* context, TfLiteNode* node) {       \
    if (IN(0)->data.f[0] <= 0) return add_one(context, node);                \
    statement;                                                               \
    return kTfLiteOk;                                                        \
  }                                                                          \
  OPERATOR(NAME, NULL, NULL, same_shape, NAME)
CHANGES(SIZES_LATE, OUT(0)->dims->data[0] = 1000000)
CHANGES(RANK_LATE, OUT(0)->dims->size = 0)
CHANGES(TYPE_LATE, OUT(0)->type = kTfLiteInt64)
CHANGES(BYTES_LATE, OUT(0)->bytes *= 100)
CHANGES(NOWHERE, OUT(0)->data.data = NULL)
CHANGES(DROPS, TfLiteTensorDataFree(OUT(0)))
CHANGES(ELSEWHERE, static float own[99]; OUT(0)->data.f = own)
CHANGES(INPUT_LATE, IN(0)->data.data = NULL)
static TfLiteStatus own_dims(TfLiteContext* context, TfLiteNode* node) {
  OUT(0)->dims->data[0] = -1;
  return context->ResizeTensor(context, OUT(0), OUT(0)->dims); /* the array that it has already */
}
OPERATOR(OWN_DIMS, NULL, NULL, own_dims, nothing)
static TfLiteStatus own_dims_fine(TfLiteContext* context, TfLiteNode* node) {
  OUT(0)->dims->data[0] = IN(0)->dims->data[0];
  return context->ResizeTensor(context, OUT(0), OUT(0)->dims);
}
OPERATOR(OWN_DIMS_FINE, NULL, NULL, own_dims_fine, add_one)
OPERATOR(SHAPELESS, NULL, NULL, dynamic_prepare, nothing)
static void* init_resizes(TfLiteContext* context, const char* buffer, size_t length) {
  void* state = init(context, buffer, length);
  (void)resize_1d(context, &context->tensors[0], 3);
  return state;
}
OPERATOR(INIT_RESIZES, init_resizes, release, same_shape, nothing)
static void free_resizes(TfLiteContext* context, void* state) {
  (void)resize_1d(context, &context->tensors[0], 3);
  release(context, state);
}
OPERATOR(FREE_RESIZES, init, free_resizes, same_shape, nothing)
static TfLiteStatus forbidden(TfLiteContext* context, TfLiteNode* node) {
  TfLiteIntArray* plan;
  return context->GetExecutionPlan(context, &plan);
}
OPERATOR(FORBIDDEN, NULL, NULL, forbidden, nothing)

/* The opaque interface: an index that is none, with user_data. */
static TfLiteStatus far_input(void* data, TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
  (void)TfLiteOpaqueTensorNumDims(TfLiteOpaqueNodeGetInput(context, node, 5)); /* a null pointer */
  return kTfLiteOk;
}
static TfLiteStatus opaque_fine(void* data, TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
  *(int*)data += 1;
  return kTfLiteOk;
}
int opaque_runs;
TfLiteOperator* FarInputRegistration(void) {
  TfLiteOperator* op = TfLiteOperatorCreate(kTfLiteBuiltinCustom, "FarInput", 1, &opaque_runs);
  TfLiteOperatorSetPrepareWithData(op, far_input);
  TfLiteOperatorSetInvokeWithData(op, opaque_fine);
  return op;
}
TfLiteOperator* OpaqueCountRegistration(void) {
  TfLiteOperator* op = TfLiteOperatorCreate(kTfLiteBuiltinCustom, "OpaqueCount", 1, &opaque_runs);
  TfLiteOperatorSetInvokeWithData(op, opaque_fine);
  return op;
}
