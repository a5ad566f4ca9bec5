/* What the functions of the interface do by their descriptions: a program of checks, linked with the provider.

   Prints a line for each that does not hold, and how many there were. What official code leaves undefined (a null
   pointer, an index out of range) is a misuse here: counted, reported, and the call fails. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opwright/lite/async.h"
#include "provider.h"

static int checks, failures;

#define CHECK(condition)                                             \
  do {                                                               \
    ++checks;                                                        \
    if (!(condition)) {                                              \
      ++failures;                                                    \
      printf("line %d: %s does not hold\n", __LINE__, #condition);   \
    }                                                                \
  } while (0)

static OwHost host;
static TfLiteContext context;
static TfLiteTensor tensors[8];
static char report[64];

/* So many misuses since the last, and what was reported of them. */
static int misuses(void) {
  int found = host.misuse;
  host.misuse = 0;
  host.report_used = 0;
  report[0] = 0;
  return found;
}
#define MISUSE(call) \
  do {               \
    misuses();       \
    call;            \
    CHECK(misuses() == 1); \
  } while (0)

static TfLiteIntArray* shape_of(int rank, int a, int b) {
  TfLiteIntArray* shape = TfLiteIntArrayCreate(rank);
  if (rank > 0) shape->data[0] = a;
  if (rank > 1) shape->data[1] = b;
  return shape;
}

static void arrays(void) {
  const int two[] = {3, 4};
  TfLiteIntArray *a = shape_of(2, 3, 4), *b = TfLiteIntArrayCopy(a), *none = TfLiteIntArrayCreate(0);
  CHECK(TfLiteIntArrayGetSizeInBytes(5) == 24 && TfLiteIntArrayGetSizeInBytes(0) == 4);
  CHECK(TfLiteIntArrayGetSizeInBytes(-1) == 0);
  CHECK(TfLiteIntArrayEqual(a, b) && !TfLiteIntArrayEqual(a, none) && TfLiteIntArrayEqual(NULL, NULL));
  CHECK(!TfLiteIntArrayEqual(a, NULL) && !TfLiteIntArrayEqual(NULL, none));
  CHECK(TfLiteIntArrayEqualsArray(a, 2, two) && !TfLiteIntArrayEqualsArray(a, 1, two));
  CHECK(TfLiteIntArrayEqualsArray(NULL, 0, NULL) && !TfLiteIntArrayEqualsArray(NULL, 2, two));
  b->data[1] = 5;
  CHECK(!TfLiteIntArrayEqual(a, b) && TfLiteIntArrayCopy(NULL) == NULL);
  MISUSE(CHECK(TfLiteIntArrayCreate(-1) == NULL));
  TfLiteIntArrayFree(a), TfLiteIntArrayFree(b), TfLiteIntArrayFree(none), TfLiteIntArrayFree(NULL);
  TfLiteFloatArray *f = TfLiteFloatArrayCreate(2), *g;
  f->data[0] = 1.5f, f->data[1] = -2.0f;
  g = TfLiteFloatArrayCopy(f);
  CHECK(g->size == 2 && g->data[1] == -2.0f && TfLiteFloatArrayGetSizeInBytes(2) == 12);
  TfLiteFloatArrayFree(f), TfLiteFloatArrayFree(g), TfLiteFloatArrayFree(NULL);
  CHECK(strcmp(TfLiteTypeGetName(kTfLiteFloat32), "FLOAT32") == 0);
  CHECK(strcmp(TfLiteTypeGetName((TfLiteType)999), "Unknown type") == 0);
}

static void whole_tensors(void) {
  TfLiteTensor t, u;
  TfLiteQuantizationParams params = {0.5f, 3};
  memset(&t, 0, sizeof t), memset(&u, 0, sizeof u);
  TfLiteTensorReset(kTfLiteFloat32, "t", shape_of(1, 2, 0), params, NULL, 0, kTfLiteDynamic, NULL, true, &t);
  CHECK(t.type == kTfLiteFloat32 && t.params.zero_point == 3 && t.is_variable && t.dims->data[0] == 2);
  CHECK(TfLiteTensorRealloc(8, &t) == kTfLiteOk && t.bytes == 8 && t.data.data != NULL);
  t.data.f[0] = 1.0f, t.data.f[1] = 2.0f;
  CHECK(TfLiteTensorRealloc(4096, &t) == kTfLiteOk && t.data.f[1] == 2.0f); /* kept */
  void* block = t.data.data;
  CHECK(TfLiteTensorResizeMaybeCopy(8, &t, false) == kTfLiteOk && t.data.data == block && t.bytes == 8); /* stays */
  u = TfLiteTensorClone(t);
  CHECK(u.data.data != t.data.data && u.data.f[1] == 2.0f && u.dims != t.dims && u.dims->data[0] == 2);
  u.data.f[1] = 7.0f, u.dims->data[0] = 9;
  CHECK(TfLiteTensorCopy(&u, &t) == kTfLiteOk && t.data.f[1] == 7.0f && t.dims->data[0] == 9);
  CHECK(TfLiteTensorRealloc(4, &u) == kTfLiteOk && TfLiteTensorCopy(&u, &t) == kTfLiteError);
  CHECK(TfLiteTensorCopy(NULL, &t) == kTfLiteOk && TfLiteTensorCopy(&t, NULL) == kTfLiteOk);
  TfLiteAffineQuantization* affine = ow_zeroed(sizeof *affine);
  affine->scale = TfLiteFloatArrayCreate(1), affine->zero_point = TfLiteIntArrayCreate(1);
  t.quantization.type = kTfLiteAffineQuantization, t.quantization.params = affine;
  TfLiteTensorFree(&t), TfLiteTensorFree(&u);
  CHECK(t.data.data == NULL && t.dims == NULL && t.quantization.type == kTfLiteNoQuantization);
  float arena[2] = {1.0f, 2.0f};
  t.allocation_type = kTfLiteArenaRw, t.data.f = arena, t.bytes = 8;
  CHECK(TfLiteTensorRealloc(4096, &t) == kTfLiteOk && t.bytes == 8 && t.data.f == arena); /* no effect */
  t.allocation_type = kTfLiteDynamic, t.allocation = arena; /* the interpreter's: left, not freed */
  CHECK(TfLiteTensorRealloc(4096, &t) == kTfLiteOk && t.data.f != arena && t.data.f[1] == 2.0f);
  TfLiteTensorFree(&t);
  CHECK(arena[1] == 2.0f && TfLiteKernelInitFailed() == (void*)-1);
  CHECK(TfLiteTensorGetAllocationStrategy(&t) == kTfLiteAllocationStrategyMalloc);
  t.allocation_type = kTfLiteMmapRo;
  CHECK(TfLiteTensorGetAllocationStrategy(&t) == kTfLiteAllocationStrategyMMap);
  CHECK(TfLiteTensorGetDataStability(&t) == kTfLiteRunStabilityAcrossRuns);
  CHECK(TfLiteTensorGetDataKnownStep(&t) == kTfLiteRunStepInit);
  t.allocation_type = kTfLiteArenaRw;
  CHECK(TfLiteTensorGetShapeKnownStep(&t) == kTfLiteRunStepPrepare);
  CHECK(TfLiteTensorGetBufferAddressStability(&t) == kTfLiteRunStabilityUnstable);
}

static void opaque_tensors(void) {
  TfLiteTensor t;
  memset(&t, 0, sizeof t);
  const TfLiteOpaqueTensor* o = (const TfLiteOpaqueTensor*)&t;
  int32_t number = 7;
  CHECK(TfLiteOpaqueTensorNumDims(o) == -1 && TfLiteTensorNumDims(&t) == -1);
  CHECK(TfLiteOpaqueTensorGetNumDimsSignature(o, &number) == kTfLiteOk && number == -1);
  t.dims = shape_of(2, 3, 4);
  t.type = kTfLiteInt8;
  CHECK(TfLiteOpaqueTensorDim(o, 1) == 4 && TfLiteOpaqueTensorType(o) == kTfLiteInt8);
  CHECK(TfLiteOpaqueTensorGetDimSignature(o, 0, &number) == kTfLiteOk && number == 3);
  TfLiteIntArray* signature = shape_of(2, -1, 4);
  t.dims_signature = signature;
  CHECK(TfLiteOpaqueTensorGetDimSignature(o, 0, &number) == kTfLiteOk && number == -1);
  CHECK(TfLiteOpaqueTensorGetNumDimsSignature(o, &number) == kTfLiteOk && number == 2);
  MISUSE(CHECK(TfLiteOpaqueTensorDim(o, 2) == -1));
  MISUSE(CHECK(TfLiteOpaqueTensorDim(o, -1) == -1));
  MISUSE(CHECK(TfLiteOpaqueTensorType(NULL) == kTfLiteNoType));
  MISUSE(CHECK(TfLiteOpaqueTensorByteSize(NULL) == 0));
  MISUSE(CHECK(TfLiteOpaqueTensorName(NULL) == NULL));
  MISUSE(CHECK(TfLiteOpaqueTensorGetQuantizationParams(NULL).scale == 0.0f));
  MISUSE(CHECK(TfLiteOpaqueTensorGetQuantization(NULL).params == NULL));
  CHECK(TfLiteOpaqueTensorData(NULL) == NULL && misuses() == 0); /* allowed */
  char bytes[12] = "hello world", out[12];
  t.data.raw = bytes, t.bytes = 12;
  CHECK(TfLiteOpaqueTensorCopyToBuffer(o, out, 12) == kTfLiteOk && strcmp(out, bytes) == 0);
  CHECK(TfLiteOpaqueTensorCopyToBuffer(o, out, 11) == kTfLiteError);
  CHECK(TfLiteOpaqueTensorCopyFromBuffer((TfLiteOpaqueTensor*)&t, "HELLO WORLD", 12) == kTfLiteOk && bytes[0] == 'H');
  TfLiteIntArrayFree(t.dims), TfLiteIntArrayFree(signature);
}

static void strings(void) {
  TfLiteTensor t;
  memset(&t, 0, sizeof t);
  TfLiteOpaqueTensor* o = (TfLiteOpaqueTensor*)&t;
  const char *words[] = {"one", "", "three\0 with a zero"}, *text;
  const int lengths[] = {3, 0, 18};
  int length;
  CHECK(TfLiteOpaqueTensorGetStringCount(o) == -1);
  t.type = kTfLiteString;
  CHECK(TfLiteOpaqueTensorWriteStrings(o, words, 3, lengths) == kTfLiteOk);
  CHECK(t.allocation_type == kTfLiteDynamic && t.dims->size == 1 && t.dims->data[0] == 3);
  CHECK(t.bytes == 5 * 4 + 21 && t.data.i32[0] == 3 && t.data.i32[1] == 20 && t.data.i32[4] == 41);
  CHECK(TfLiteOpaqueTensorGetStringCount(o) == 3);
  CHECK(TfLiteOpaqueTensorGetString(o, 2, &text, &length) == kTfLiteOk && length == 18);
  CHECK(memcmp(text, words[2], 18) == 0);
  const char* own[] = {text}; /* of the buffer that is replaced */
  CHECK(TfLiteOpaqueTensorWriteStrings(o, own, 1, &length) == kTfLiteOk);
  CHECK(TfLiteOpaqueTensorGetString(o, 0, &text, &length) == kTfLiteOk && memcmp(text, words[2], 18) == 0);
  CHECK(TfLiteOpaqueTensorWriteString(o, "x", 1) == kTfLiteOk && TfLiteOpaqueTensorGetStringCount(o) == 1);
  MISUSE(CHECK(TfLiteOpaqueTensorGetString(o, 1, &text, &length) == kTfLiteError));
  t.data.i32[2] = 4000; /* where the last ends: outside */
  CHECK(TfLiteOpaqueTensorGetStringCount(o) == -1);
  t.data.i32[2] = 13, t.data.i32[0] = INT32_MAX;
  CHECK(TfLiteOpaqueTensorGetStringCount(o) == -1);
  TfLiteTensorFree(&t);
  t.type = kTfLiteFloat32;
  MISUSE(CHECK(TfLiteOpaqueTensorWriteString(o, "x", 1) == kTfLiteError));
}

static void shapes(void) {
  TfLiteTensor* t = tensors;
  host.step = OW_PREPARE;
  t->name = "t", t->type = kTfLiteFloat32, t->allocation_type = kTfLiteArenaRw;
  CHECK(context.ResizeTensor(&context, t, shape_of(2, 3, 4)) == kTfLiteOk && t->bytes == 48 && t->data.data == NULL);
  CHECK(context.ResizeTensor(&context, t, shape_of(2, 3, -4)) == kTfLiteError && t->dims->data[1] == 4);
  CHECK(strstr(report, "'t'") != NULL && host.misuse == 0);
  float memory[12];
  t->data.f = memory, host.step = OW_INVOKE;
  TfLiteIntArray* again = shape_of(2, 3, 4);
  CHECK(context.ResizeTensor(&context, t, again) == kTfLiteOk && t->dims == again && t->data.f == memory);
  CHECK(context.ResizeTensor(&context, t, shape_of(1, 5, 0)) == kTfLiteError && t->dims->size == 2);
  MISUSE(CHECK(context.ResizeTensor(&context, NULL, shape_of(0, 0, 0)) == kTfLiteError));
  MISUSE(CHECK(context.ResizeTensor(&context, t, NULL) == kTfLiteError));
  t->allocation_type = kTfLiteMmapRo;
  CHECK(context.ResizeTensor(&context, t, shape_of(1, 5, 0)) == kTfLiteError);
  t->data.data = NULL, t->allocation_type = kTfLiteDynamic;
  CHECK(context.ResizeTensor(&context, t, shape_of(1, 5, 0)) == kTfLiteOk && t->bytes == 20 && t->data.data != NULL);
  TfLiteIntArray* own = t->dims;
  own->data[0] = 6; /* changed in place and given again */
  CHECK(context.ResizeTensor(&context, t, own) == kTfLiteOk && t->bytes == 24 && t->dims == own);
  t->type = kTfLiteInt4;
  CHECK(context.ResizeTensor(&context, t, shape_of(1, 5, 0)) == kTfLiteOk && t->bytes == 3);
  TfLiteTensorFree(t);
  size_t bytes = 0;
  CHECK(TfLiteOpaqueContextGetSizeOfType((TfLiteOpaqueContext*)&context, kTfLiteInt16, &bytes) == kTfLiteOk);
  CHECK(bytes == 2);
  CHECK(TfLiteOpaqueContextGetSizeOfType((TfLiteOpaqueContext*)&context, kTfLiteString, &bytes) == kTfLiteError);
}

static void new_tensors(void) {
  TfLiteOpaqueContext* o = (TfLiteOpaqueContext*)&context;
  int first = -1;
  CHECK(context.AddTensors(&context, 2, &first) == kTfLiteOk && first == 1 && context.tensors_size == 3);
  CHECK(tensors[1].type == kTfLiteNoType && tensors[1].dims == NULL && tensors[1].buffer_handle == -1);
  CHECK(context.AddTensors(&context, 99, &first) == kTfLiteError && context.tensors_size == 3);
  CHECK(context.AddTensors(&context, -1, &first) == kTfLiteError);
  TfLiteOpaqueTensorBuilder* builder = TfLiteOpaqueTensorBuilderCreate();
  TfLiteOpaqueTensorBuilderSetType(TfLiteOpaqueTensorBuilderSetAllocationType(builder, kTfLiteArenaRw), kTfLiteInt8);
  CHECK(TfLiteOpaqueContextAddTensor(o, builder, &first) == kTfLiteOk && first == 3 && tensors[3].type == kTfLiteInt8);
  TfLiteOpaqueTensorBuilderSetData(builder, report); /* an arena tensor has none */
  MISUSE(CHECK(TfLiteOpaqueContextAddTensor(o, builder, &first) == kTfLiteError));
  TfLiteOpaqueTensorBuilderSetAllocationType(builder, kTfLiteMmapRo);
  MISUSE(CHECK(TfLiteOpaqueContextAddTensor(o, builder, &first) == kTfLiteError));
  TfLiteOpaqueTensorBuilderDelete(builder);
  CHECK(TfLiteOpaqueContextGetOpaqueTensor(o, 3) == (TfLiteOpaqueTensor*)(tensors + 3));
  MISUSE(CHECK(TfLiteOpaqueContextGetOpaqueTensor(o, 4) == NULL));
  CHECK(TfLiteOpaqueContextGetNumTensors(o) == 4);
}

static void refused(void) {
  TfLiteOpaqueContext* o = (TfLiteOpaqueContext*)&context;
  TfLiteIntArray* plan = (TfLiteIntArray*)report;
  misuses();
  CHECK(context.GetExecutionPlan(&context, &plan) == kTfLiteError && plan == NULL);
  CHECK(strcmp(report, "The function is forbidden if not calling in delegate.") == 0);
  CHECK(TfLiteOpaqueContextAcquireSubgraphContext(o, 0, &o) == kTfLiteError && o == NULL);
  CHECK(context.AllocatePersistentBuffer == NULL && context.GetTensor == NULL && context.GetEvalTensor == NULL);
  MISUSE(CHECK(TfLiteModelCreate(NULL, 0) == NULL));
  MISUSE(CHECK(TfLiteInterpreterInvoke(NULL) == kTfLiteError));
  MISUSE(TfLiteInterpreterOptionsAddCustomOp(NULL, "x", NULL, 1, 1));
  CHECK(TfLiteSchemaVersion() == 3);
}

static void reports(void) {
  misuses();
  for (int i = 0; i < 50; ++i) context.ReportError(&context, "%d and %s", i, "more");
  CHECK(strlen(report) == sizeof report - 1 && strcmp(report + sizeof report - 4, "...") == 0);
  CHECK(strncmp(report, "0 and more\n1 and more\n", 22) == 0);
  misuses();
  TfLiteOpaqueContextReportError((TfLiteOpaqueContext*)&context, "%s", "once");
  CHECK(strcmp(report, "once") == 0);
}

static TfLiteRegistration by_value(void) {
  TfLiteRegistration r;
  memset(&r, 0, sizeof r);
  r.version = 7;
  return r;
}
static TfLiteRegistration record;
static TfLiteRegistration* by_address(void) { return &record; }
static int calls;
static void* init_data(void* data, TfLiteOpaqueContext* c, const char* b, size_t n) {
  (void)c, (void)b, (void)n;
  return data;
}
static void* init_plain(TfLiteOpaqueContext* c, const char* b, size_t n) { (void)c, (void)b, (void)n; return &calls; }
static void* init_classic(TfLiteContext* c, const char* b, size_t n) { (void)c, (void)b, (void)n; return &record; }
static TfLiteStatus misused(TfLiteOpaqueContext* c, TfLiteOpaqueNode* n) {
  (void)c, (void)n;
  TfLiteOpaqueTensorType(NULL);
  return kTfLiteOk;
}

static void operators(void) {
  char buffer[256] = {0};
  void* result;
  void* f;
  TfLiteRegistration (*value)(void) = by_value;
  TfLiteRegistration* (*address)(void) = by_address;
  memcpy(&f, &value, sizeof f);
  CHECK(ow_call_by_value(f, buffer, &result) == 1 && ((TfLiteRegistration*)buffer)->version == 7);
  memset(buffer, 0, sizeof buffer), memcpy(&f, &address, sizeof f);
  CHECK(ow_call_by_value(f, buffer, &result) == 0 && result == &record && !ow_is_operator(result));
  TfLiteOperator* op = TfLiteOperatorCreate(kTfLiteBuiltinCustom, "Op", 3, report);
  CHECK(ow_is_operator(op) && TfLiteOperatorGetVersion(op) == 3 && TfLiteOperatorGetUserData(op) == report);
  CHECK(TfLiteOperatorGetVersion(NULL) == -1 && TfLiteOperatorGetBuiltInCode(op) == kTfLiteBuiltinCustom);
  TfLiteRegistration r;
  ow_operator_registration(op, &r);
  CHECK(r.registration_external == op && strcmp(r.custom_name, "Op") == 0 && r.version == 3);
  /* In this order: with data, plain, the record's own, null. */
  TfLiteNode node;
  memset(&node, 0, sizeof node);
  CHECK(ow_init(&r, &context, NULL, 0) == NULL);
  r.init = init_classic;
  CHECK(ow_init(&r, &context, NULL, 0) == &record);
  TfLiteOperatorSetInit(op, init_plain);
  CHECK(ow_init(&r, &context, NULL, 0) == &calls);
  CHECK(TfLiteOperatorSetInitWithData(op, init_data) == kTfLiteOk && ow_init(&r, &context, NULL, 0) == report);
  CHECK(ow_prepare(&r, &context, &node) == kTfLiteOk && !ow_has_invoke(&r));
  CHECK(ow_invoke(&r, &context, &node) == kTfLiteError && strstr(report, "no invoke") != NULL);
  TfLiteOperatorSetInvoke(op, misused);
  CHECK(ow_has_invoke(&r) && ow_invoke(&r, &context, &node) == kTfLiteError); /* though it said OK */
  TfLiteOperatorDelete(op);
  CHECK(!ow_is_operator(op));
  TfLiteOperatorDelete(NULL);
  MISUSE(TfLiteOperatorSetInit(NULL, init_plain));
}

static void attributes(void) {
  TfLiteAttributeMap *map = TfLiteAttributeMapCreate(kTfLiteAttrMapTypeBuffer), *copy;
  size_t size = 0;
  int number = 0;
  bool flag = false;
  const char* text = NULL;
  CHECK(TfLiteAttributeMapIsBufferAttributeMap(map) && !TfLiteAttributeMapIsSyncAttributeMap(map));
  CHECK(!TfLiteAttributeMapGetSizeTBufferAttr(map, kTfLiteBufferAttrKeySize, &size));
  CHECK(TfLiteAttributeMapSetSizeTBufferAttr(map, kTfLiteBufferAttrKeySize, 64));
  CHECK(TfLiteAttributeMapSetSizeTBufferAttr(map, kTfLiteBufferAttrKeySize, 128)); /* again: replaced */
  CHECK(TfLiteAttributeMapGetSizeTBufferAttr(map, kTfLiteBufferAttrKeySize, &size) && size == 128);
  CHECK(!TfLiteAttributeMapGetStringBufferAttr(map, kTfLiteBufferAttrKeySize, &text)); /* of another kind */
  CHECK(!TfLiteAttributeMapSetStringSyncAttr(map, kTfLiteSynchronizationAttrKeyObjectTypeName, "x"));
  TfLiteAttributeMapSetCustomIntAttr(map, "mine", 5);
  TfLiteAttributeMapSetCustomBoolAttr(map, "yours", true);
  TfLiteAttributeMapSetStringAttr(map, 77, "seven");
  copy = TfLiteAttributeMapCreate(kTfLiteAttrMapTypeSync);
  TfLiteAttributeMapCopy(map, copy);
  TfLiteAttributeMapDelete(map);
  CHECK(TfLiteAttributeMapGetCustomIntAttr(copy, "mine", &number) && number == 5);
  CHECK(TfLiteAttributeMapGetCustomBoolAttr(copy, "yours", &flag) && flag);
  CHECK(TfLiteAttributeMapGetStringAttr(copy, 77, &text) && strcmp(text, "seven") == 0);
  CHECK(!TfLiteAttributeMapGetCustomIntAttr(copy, "nobody's", &number));
  TfLiteAttributeMapDelete(copy), TfLiteAttributeMapDelete(NULL);
  TfLiteAsyncKernel* kernel = TfLiteAsyncKernelCreate(report);
  CHECK(TfLiteAsyncKernelGetKernelData(kernel) == report);
  TfLiteAsyncKernelSetPrepare(kernel, NULL);
  TfLiteAsyncKernelDelete(kernel);
  TfLiteBackendBuffer* buffer = TfLiteBackendBufferCreate();
  TfLiteBackendBufferSetPtr(buffer, report);
  CHECK(TfLiteBackendBufferGetPtr(buffer) == report);
  TfLiteBackendBufferDelete(buffer);
  MISUSE(CHECK(TfLiteExecutionTaskGetStatus(NULL) == kTfLiteError));
}

int main(void) {
  int64_t before = ow_blocks();
  host.report = report, host.report_size = sizeof report, host.tensors_capacity = 8;
  context.tensors = tensors, context.tensors_size = 1;
  ow_context_init(&context, &host);
  ow_here = &host; /* as inside a callback */
  arrays(), whole_tensors(), opaque_tensors(), strings(), shapes(), new_tensors(), refused(), reports(), operators();
  attributes();
  CHECK(ow_blocks() == before);
  printf("%d checks, %d failures\n", checks, failures);
  return failures != 0;
}
