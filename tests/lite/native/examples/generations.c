/* An operator as libraries of four generations made it, and records of three older lengths: y = x + GENERATION.

   GENERATION is 1 to 4 for the creation functions of early 2022, until TensorFlow 2.16, of 2.17, and since; 5, 6, 7 for
   records of 64, 72, 80 bytes; 8 for the function that 2.17 also had. What headers of those times declared is written
   out here, so that the library has the undefined symbols, and passes the arguments, of then. */
#include "tensorflow/lite/c/c_api_opaque.h"
#include "tensorflow/lite/c/common.h"

static TfLiteStatus Prepare(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
  const TfLiteOpaqueTensor* input = TfLiteOpaqueNodeGetInput(context, node, 0);
  int rank = TfLiteOpaqueTensorNumDims(input);
  TfLiteIntArray* shape = TfLiteIntArrayCreate(rank);
  for (int i = 0; i < rank; ++i) shape->data[i] = TfLiteOpaqueTensorDim(input, i);
  return TfLiteOpaqueContextResizeTensor(context, TfLiteOpaqueNodeGetOutput(context, node, 0), shape);
}

static TfLiteStatus Invoke(TfLiteOpaqueContext* context, TfLiteOpaqueNode* node) {
  const TfLiteOpaqueTensor* input = TfLiteOpaqueNodeGetInput(context, node, 0);
  const float* x = (const float*)TfLiteOpaqueTensorData(input);
  float* y = (float*)TfLiteOpaqueTensorData(TfLiteOpaqueNodeGetOutput(context, node, 0));
  size_t count = TfLiteOpaqueTensorByteSize(input) / sizeof(float);
  for (size_t i = 0; i < count; ++i) y[i] = x[i] + (float)GENERATION;
  return kTfLiteOk;
}

#if GENERATION <= 4 || GENERATION == 8
#undef TfLiteOperatorCreate
#undef TfLiteRegistrationExternalCreate
#undef TfLiteRegistrationExternalSetPrepare
#undef TfLiteRegistrationExternalSetInvoke
typedef TfLiteStatus (*Step)(TfLiteOpaqueContext*, TfLiteOpaqueNode*);
#endif
#if GENERATION == 1
TfLiteOperator* TfLiteRegistrationExternalCreate(const char* custom_name, const int version);
#define CREATE TfLiteRegistrationExternalCreate("Add", 1)
#elif GENERATION == 2
TfLiteOperator* TfLiteRegistrationExternalCreate(TfLiteBuiltinOperator code, const char* custom_name, int version);
#define CREATE TfLiteRegistrationExternalCreate(kTfLiteBuiltinCustom, "Add", 1)
#elif GENERATION == 3
/* Declared under another name: this one has four arguments in the headers of today. */
#if defined(__APPLE__)
TfLiteOperator* Create3(TfLiteBuiltinOperator code, const char* name, int version) __asm__("_TfLiteOperatorCreate");
#else
TfLiteOperator* Create3(TfLiteBuiltinOperator code, const char* name, int version) __asm__("TfLiteOperatorCreate");
#endif
#define CREATE Create3(kTfLiteBuiltinCustom, "Add", 1)
#elif GENERATION == 4
#define CREATE TfLiteOperatorCreate(kTfLiteBuiltinCustom, "Add", 1, NULL)
#elif GENERATION == 8
#define CREATE TfLiteOperatorCreateWithData(kTfLiteBuiltinCustom, "Add", 1, NULL)
#endif

#if GENERATION <= 2
void TfLiteRegistrationExternalSetPrepare(TfLiteOperator* op, Step prepare);
void TfLiteRegistrationExternalSetInvoke(TfLiteOperator* op, Step invoke);
#define SET_PREPARE TfLiteRegistrationExternalSetPrepare
#define SET_INVOKE TfLiteRegistrationExternalSetInvoke
#else
#define SET_PREPARE TfLiteOperatorSetPrepare
#define SET_INVOKE TfLiteOperatorSetInvoke
#endif

#if GENERATION <= 4 || GENERATION == 8
const TfLiteOperator* Entry(void) {
  static TfLiteOperator* op = NULL;
  if (op == NULL) {
    op = CREATE;
    SET_PREPARE(op, Prepare);
    SET_INVOKE(op, Invoke);
  }
  return op;
}
#else
#if GENERATION == 5
typedef TfLiteRegistration_V1 Record;
#elif GENERATION == 6
typedef TfLiteRegistration_V2 Record;
#else
typedef TfLiteRegistration_V3 Record;
#endif
static TfLiteStatus OldPrepare(TfLiteContext* context, TfLiteNode* node) {
  return Prepare((TfLiteOpaqueContext*)context, (TfLiteOpaqueNode*)node);
}
static TfLiteStatus OldInvoke(TfLiteContext* context, TfLiteNode* node) {
  return Invoke((TfLiteOpaqueContext*)context, (TfLiteOpaqueNode*)node);
}
/* What stands behind a record of then must not be read as a part of it. */
struct {
  Record record;
  unsigned char behind[32];
} whole;

Record* Entry(void) {
  for (size_t i = 0; i < sizeof whole.behind; ++i) whole.behind[i] = 0xa5;
  whole.record.prepare = OldPrepare;
  whole.record.invoke = OldInvoke;
  return &whole.record;
}
#endif
