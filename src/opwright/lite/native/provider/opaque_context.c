/* The opaque interface to contexts and nodes: what the fields of the structs say, with the pointers looked at first. */
#include <stdlib.h>
#include <string.h>

#include "provider.h"

#define CONTEXT(opaque) ((TfLiteContext*)(opaque))
#define NODE(opaque) ((TfLiteNode*)(opaque))
#define HOST(context) ((OwHost*)(context)->impl_)

/* --- reports ------------------------------------------------------------------------------------------------------ */

void TfLiteOpaqueContextReportError(TfLiteOpaqueContext* context, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  TfLiteOpaqueContextReportErrorVa(context, format, arguments);
  va_end(arguments);
}

void TfLiteOpaqueContextReportErrorVa(TfLiteOpaqueContext* context, const char* format, va_list arguments) {
  ow_report_va(context == NULL ? ow_here : HOST(CONTEXT(context)), format, arguments);
}

/* --- contexts ----------------------------------------------------------------------------------------------------- */

static TfLiteStatus lend(const int* data, int size, const int** data_out, int* size_out) {
  OW_REQUIRE(data_out != NULL && size_out != NULL, kTfLiteError);
  *data_out = data;
  *size_out = size;
  return kTfLiteOk;
}

#define LEND_OF_HOST(Name, field)                                                                                 \
  TfLiteStatus TfLiteOpaqueContextGet##Name(const TfLiteOpaqueContext* context, const int** field, int* count) {  \
    OW_REQUIRE(context != NULL, kTfLiteError);                                                                    \
    OwHost* host = HOST(CONTEXT(context));                                                                        \
    return lend(host->field, host->field##_size, field, count);                                                   \
  }
LEND_OF_HOST(Inputs, inputs)
LEND_OF_HOST(Outputs, outputs)
LEND_OF_HOST(Variables, variables)

size_t TfLiteOpaqueContextGetNumNodes(const TfLiteOpaqueContext* context) {
  OW_REQUIRE(context != NULL, 0);
  return HOST(CONTEXT(context))->nodes_size;
}

size_t TfLiteOpaqueContextGetNumTensors(const TfLiteOpaqueContext* context) {
  OW_REQUIRE(context != NULL, 0);
  return CONTEXT(context)->tensors_size;
}

const char* TfLiteOpaqueContextGetName(const TfLiteOpaqueContext* context) {
  OW_REQUIRE(context != NULL, NULL);
  return HOST(CONTEXT(context))->name;
}

TfLiteOpaqueTensor* TfLiteOpaqueContextGetOpaqueTensor(const TfLiteOpaqueContext* context, int index) {
  OW_REQUIRE(context != NULL, NULL);
  OW_REQUIRE_INDEX(index, CONTEXT(context)->tensors_size, NULL);
  return (TfLiteOpaqueTensor*)(CONTEXT(context)->tensors + index);
}

TfLiteStatus TfLiteOpaqueContextResizeTensor(TfLiteOpaqueContext* context, TfLiteOpaqueTensor* tensor,
                                             TfLiteIntArray* shape) {
  if (context == NULL) TfLiteIntArrayFree(shape); /* it is taken in every case */
  OW_REQUIRE(context != NULL, kTfLiteError);
  return CONTEXT(context)->ResizeTensor(CONTEXT(context), (TfLiteTensor*)tensor, shape);
}

TfLiteStatus TfLiteOpaqueContextGetSizeOfType(TfLiteOpaqueContext* context, TfLiteType type, size_t* bytes) {
  OW_REQUIRE(bytes != NULL, kTfLiteError);
  *bytes = (size_t)(ow_bits(type) + 7) / 8;
  if (*bytes != 0) return kTfLiteOk;
  ow_report(context == NULL ? ow_here : HOST(CONTEXT(context)), "elements of %s have no fixed size",
            TfLiteTypeGetName(type));
  return kTfLiteError;
}

TfLiteStatus TfLiteOpaqueContextGetMetadata(TfLiteOpaqueContext* context, const char* name, const char** ptr,
                                            size_t* bytes) {
  OW_REQUIRE(context != NULL, kTfLiteError);
  return CONTEXT(context)->GetModelMetadata(CONTEXT(context), name, ptr, bytes);
}

TfLiteStatus TfLiteOpaqueContextGetExternalContext(TfLiteOpaqueContext* context, void** external,
                                                   TfLiteExternalContextType type) {
  OW_REQUIRE(context != NULL && external != NULL, kTfLiteError);
  *external = CONTEXT(context)->GetExternalContext(CONTEXT(context), type);
  return kTfLiteOk;
}

TfLiteStatus TfLiteOpaqueContextGetNodeInitDataMmapInfo(const TfLiteOpaqueContext* context,
                                                        const TfLiteOpaqueNode* node, int* fd, int64_t* offset,
                                                        int64_t* size) {
  (void)node, (void)fd, (void)offset, (void)size;
  ow_report(context == NULL ? ow_here : HOST(CONTEXT(context)), "the model's file is not mapped for operators to read");
  return kTfLiteError;
}

/* For delegates, which an operator is none of: as the functions of the context refuse them. */

TfLiteStatus TfLiteOpaqueContextGetExecutionPlan(TfLiteOpaqueContext* context, TfLiteIntArray** plan) {
  OW_REQUIRE(context != NULL, kTfLiteError);
  return CONTEXT(context)->GetExecutionPlan(CONTEXT(context), plan);
}

TfLiteStatus TfLiteOpaqueContextGetNodeAndRegistration(TfLiteOpaqueContext* context, int index, TfLiteOpaqueNode** node,
                                                       TfLiteOperator** op) {
  OW_REQUIRE(context != NULL, kTfLiteError);
  if (op != NULL) *op = NULL;
  return CONTEXT(context)->GetNodeAndRegistration(CONTEXT(context), index, (TfLiteNode**)node, NULL);
}

TfLiteStatus TfLiteOpaqueContextReplaceNodeSubsetsWithDelegateKernels(TfLiteOpaqueContext* context, TfLiteOperator* op,
                                                                      const TfLiteIntArray* nodes,
                                                                      TfLiteOpaqueDelegate* delegate) {
  (void)op;
  OW_REQUIRE(context != NULL, kTfLiteError);
  TfLiteRegistration none;
  memset(&none, 0, sizeof none);
  return CONTEXT(context)->ReplaceNodeSubsetsWithDelegateKernels(CONTEXT(context), none, nodes, delegate);
}

TfLiteStatus TfLiteOpaqueContextAcquireSubgraphContext(TfLiteOpaqueContext* context, int index,
                                                       TfLiteOpaqueContext** acquired) {
  OW_REQUIRE(context != NULL, kTfLiteError);
  return CONTEXT(context)->AcquireSubgraphContext(CONTEXT(context), index, (TfLiteContext**)acquired);
}

TfLiteStatus TfLiteOpaqueContextReleaseSubgraphContext(TfLiteOpaqueContext* context, int index) {
  OW_REQUIRE(context != NULL, kTfLiteError);
  return CONTEXT(context)->ReleaseSubgraphContext(CONTEXT(context), index);
}

TfLiteStatus TfLiteOpaqueContextMarkSubgraphAsDelegationSkippable(TfLiteOpaqueContext* context, int index) {
  return TfLiteOpaqueContextReleaseSubgraphContext(context, index);
}

/* --- nodes -------------------------------------------------------------------------------------------------------- */

/* The tensor at a place of a list of indices; null for a place that is not there, or left out. */
static TfLiteOpaqueTensor* tensor_at(const TfLiteOpaqueContext* context, const TfLiteIntArray* indices, int place) {
  if (indices == NULL || place < 0 || place >= indices->size) return NULL;
  int index = indices->data[place];
  if (index < 0 || (size_t)index >= CONTEXT(context)->tensors_size) return NULL;
  return (TfLiteOpaqueTensor*)(CONTEXT(context)->tensors + index);
}

const TfLiteOpaqueTensor* TfLiteOpaqueNodeGetInput(const TfLiteOpaqueContext* context, const TfLiteOpaqueNode* node,
                                                   int index) {
  OW_REQUIRE(context != NULL && node != NULL, NULL);
  return tensor_at(context, NODE(node)->inputs, index);
}

TfLiteOpaqueTensor* TfLiteOpaqueNodeGetOutput(TfLiteOpaqueContext* context, const TfLiteOpaqueNode* node, int index) {
  OW_REQUIRE(context != NULL && node != NULL, NULL);
  return tensor_at(context, NODE(node)->outputs, index);
}

int TfLiteOpaqueNodeNumberOfInputs(const TfLiteOpaqueNode* node) {
  OW_REQUIRE(node != NULL, -1);
  return NODE(node)->inputs == NULL ? 0 : NODE(node)->inputs->size;
}

int TfLiteOpaqueNodeNumberOfOutputs(const TfLiteOpaqueNode* node) {
  OW_REQUIRE(node != NULL, -1);
  return NODE(node)->outputs == NULL ? 0 : NODE(node)->outputs->size;
}

void* TfLiteOpaqueNodeGetUserData(const TfLiteOpaqueNode* node) {
  OW_REQUIRE(node != NULL, NULL);
  return NODE(node)->user_data;
}

void* TfLiteOpaqueNodeGetBuiltinData(const TfLiteOpaqueNode* node) {
  OW_REQUIRE(node != NULL, NULL);
  return NODE(node)->builtin_data;
}

TfLiteStatus TfLiteOpaqueNodeGetCustomInitialData(const TfLiteOpaqueNode* node, const void** data, int* size) {
  OW_REQUIRE(node != NULL && data != NULL && size != NULL, kTfLiteError);
  *data = NODE(node)->custom_initial_data;
  *size = NODE(node)->custom_initial_data_size;
  return kTfLiteOk;
}

#define LEND_OF_NODE(Name, field)                                                                             \
  TfLiteStatus TfLiteOpaqueNode##Name(const TfLiteOpaqueNode* node, const int** field, int* count) {          \
    OW_REQUIRE(node != NULL, kTfLiteError);                                                                   \
    const TfLiteIntArray* indices = NODE(node)->field;                                                        \
    return lend(indices == NULL ? NULL : indices->data, indices == NULL ? 0 : indices->size, field, count);   \
  }
LEND_OF_NODE(Inputs, inputs)
LEND_OF_NODE(Outputs, outputs)
LEND_OF_NODE(Temporaries, temporaries)

TfLiteStatus TfLiteOpaqueNodeSetTemporaries(TfLiteOpaqueNode* node, const int* temporaries, int count) {
  OW_REQUIRE(node != NULL, kTfLiteError);
  OW_REQUIRE(count >= 0 && (count == 0 || temporaries != NULL), kTfLiteError);
  TfLiteIntArray* copy = TfLiteIntArrayCreate(count);
  OW_REQUIRE(copy != NULL, kTfLiteError);
  if (count > 0) memcpy(copy->data, temporaries, (size_t)count * sizeof(int));
  TfLiteIntArrayFree(NODE(node)->temporaries);
  NODE(node)->temporaries = copy;
  return kTfLiteOk;
}

static int index_at(const TfLiteIntArray* indices, int place) {
  return indices == NULL || place < 0 || place >= indices->size ? -1 : indices->data[place];
}

int TfLiteOpaqueNodeGetInputTensorIndex(const TfLiteOpaqueNode* node, int place) {
  OW_REQUIRE(node != NULL, -1);
  return index_at(NODE(node)->inputs, place);
}

int TfLiteOpaqueNodeGetOutputTensorIndex(const TfLiteOpaqueNode* node, int place) {
  OW_REQUIRE(node != NULL, -1);
  return index_at(NODE(node)->outputs, place);
}
