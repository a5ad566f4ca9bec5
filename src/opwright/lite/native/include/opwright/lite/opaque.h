/* The opaque interface of operators: contexts, nodes and tensors by functions alone.

   Where a pointer is null or an index is out of range that may not be, a function of this run time reports it and
   gives kTfLiteError, null, -1 or 0; the call of the operator then counts as failed. */
#ifndef OPWRIGHT_LITE_OPAQUE_H_
#define OPWRIGHT_LITE_OPAQUE_H_

#include <stdarg.h>

#include "common.h"
#include "operator.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- tensors ------------------------------------------------------------------------------------------------------- */

TFL_CAPI_EXPORT TfLiteType TfLiteOpaqueTensorType(const TfLiteOpaqueTensor* opaque_tensor);
/* The rank; -1 for a tensor that has no shape yet. */
TFL_CAPI_EXPORT int32_t TfLiteOpaqueTensorNumDims(const TfLiteOpaqueTensor* opaque_tensor);
TFL_CAPI_EXPORT int32_t TfLiteOpaqueTensorDim(const TfLiteOpaqueTensor* opaque_tensor, int32_t dim_index);
/* The shape as the model declares it: -1 for sizes that a run decides. num_dims is -1 where it declares none. */
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueTensorGetNumDimsSignature(const TfLiteOpaqueTensor* opaque_tensor,
                                                                   int32_t* num_dims);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueTensorGetDimSignature(const TfLiteOpaqueTensor* opaque_tensor,
                                                               int32_t dim_index, int32_t* dim_length);
TFL_CAPI_EXPORT int TfLiteOpaqueTensorIsVariable(const TfLiteOpaqueTensor* opaque_tensor);
TFL_CAPI_EXPORT size_t TfLiteOpaqueTensorByteSize(const TfLiteOpaqueTensor* opaque_tensor);
/* Null where there is no memory yet: in prepare, values of constants alone are there. */
TFL_CAPI_EXPORT void* TfLiteOpaqueTensorData(const TfLiteOpaqueTensor* opaque_tensor);
TFL_CAPI_EXPORT TfLiteAllocationType TfLiteOpaqueTensorGetAllocationType(const TfLiteOpaqueTensor* opaque_tensor);
TFL_CAPI_EXPORT TfLiteAllocationStrategy TfLiteOpaqueTensorGetAllocationStrategy(const TfLiteOpaqueTensor* t);
TFL_CAPI_EXPORT TfLiteRunStability TfLiteOpaqueTensorGetBufferAddressStability(const TfLiteOpaqueTensor* t);
TFL_CAPI_EXPORT TfLiteRunStability TfLiteOpaqueTensorGetDataStability(const TfLiteOpaqueTensor* t);
TFL_CAPI_EXPORT TfLiteRunStep TfLiteOpaqueTensorGetDataKnownStep(const TfLiteOpaqueTensor* t);
TFL_CAPI_EXPORT TfLiteRunStep TfLiteOpaqueTensorGetShapeKnownStep(const TfLiteOpaqueTensor* t);
TFL_CAPI_EXPORT const char* TfLiteOpaqueTensorName(const TfLiteOpaqueTensor* opaque_tensor);
TFL_CAPI_EXPORT TfLiteQuantization TfLiteOpaqueTensorGetQuantization(const TfLiteOpaqueTensor* opaque_tensor);
TFL_CAPI_EXPORT TfLiteQuantizationParams
TfLiteOpaqueTensorGetQuantizationParams(const TfLiteOpaqueTensor* opaque_tensor);
/* The size must be the tensor's own. */
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueTensorCopyFromBuffer(TfLiteOpaqueTensor* opaque_tensor,
                                                              const void* input_data, size_t input_data_size);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueTensorCopyToBuffer(const TfLiteOpaqueTensor* opaque_tensor, void* output_data,
                                                            size_t output_data_size);
/* Strings: -1 where the tensor holds none that can be read. A string is not copied and has no 0 at its end. */
TFL_CAPI_EXPORT int TfLiteOpaqueTensorGetStringCount(const TfLiteOpaqueTensor* tensor);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueTensorGetString(const TfLiteOpaqueTensor* tensor, int index, const char** str,
                                                         int* len);
/* Makes the tensor a vector of copies of these strings. */
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueTensorWriteStrings(TfLiteOpaqueTensor* tensor, const char* const* str_array,
                                                            int str_array_len, const int* str_n_len);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueTensorWriteString(TfLiteOpaqueTensor* tensor, const char* str, int len);
/* From now on its shape and memory come from ResizeTensor in invoke. */
TFL_CAPI_EXPORT void TfLiteOpaqueTensorSetAllocationTypeToDynamic(TfLiteOpaqueTensor* tensor);
TFL_CAPI_EXPORT void TfLiteOpaqueTensorSetNonCpuAllocation(TfLiteOpaqueTensor* tensor);

/* --- tensors to be added ------------------------------------------------------------------------------------------- */

TFL_CAPI_EXPORT TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderCreate(void);
TFL_CAPI_EXPORT void TfLiteOpaqueTensorBuilderDelete(TfLiteOpaqueTensorBuilder* builder);
TFL_CAPI_EXPORT TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetType(TfLiteOpaqueTensorBuilder* builder,
                                                                            TfLiteType type);
/* For dynamic tensors, which need data from malloc; the others may have none. */
TFL_CAPI_EXPORT TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetData(TfLiteOpaqueTensorBuilder* builder,
                                                                            void* data);
TFL_CAPI_EXPORT TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetAllocationType(
    TfLiteOpaqueTensorBuilder* builder, TfLiteAllocationType allocation_type);
TFL_CAPI_EXPORT TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetQuantizationParams(
    TfLiteOpaqueTensorBuilder* builder, TfLiteQuantizationParams params);
TFL_CAPI_EXPORT TfLiteOpaqueTensorBuilder* TfLiteOpaqueTensorBuilderSetQuantization(TfLiteOpaqueTensorBuilder* builder,
                                                                                    TfLiteQuantization quantization);

/* --- nodes --------------------------------------------------------------------------------------------------------- */

/* Null where an optional input was left out. */
TFL_CAPI_EXPORT const TfLiteOpaqueTensor* TfLiteOpaqueNodeGetInput(const TfLiteOpaqueContext* opaque_context,
                                                                   const TfLiteOpaqueNode* opaque_node, int index);
TFL_CAPI_EXPORT TfLiteOpaqueTensor* TfLiteOpaqueNodeGetOutput(TfLiteOpaqueContext* opaque_context,
                                                              const TfLiteOpaqueNode* opaque_node, int index);
TFL_CAPI_EXPORT int TfLiteOpaqueNodeNumberOfInputs(const TfLiteOpaqueNode* opaque_node);
TFL_CAPI_EXPORT int TfLiteOpaqueNodeNumberOfOutputs(const TfLiteOpaqueNode* opaque_node);
/* What init gave. */
TFL_CAPI_EXPORT void* TfLiteOpaqueNodeGetUserData(const TfLiteOpaqueNode* opaque_node);
TFL_CAPI_EXPORT void* TfLiteOpaqueNodeGetBuiltinData(const TfLiteOpaqueNode* opaque_node);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueNodeGetCustomInitialData(const TfLiteOpaqueNode* opaque_node,
                                                                  const void** init_data, int* size);
/* Indices of tensors; the arrays stay the run time's. */
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueNodeInputs(const TfLiteOpaqueNode* opaque_node, const int** inputs,
                                                    int* num_inputs);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueNodeOutputs(const TfLiteOpaqueNode* opaque_node, const int** outputs,
                                                     int* num_outputs);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueNodeSetTemporaries(TfLiteOpaqueNode* opaque_node, const int* temporaries,
                                                            int num_temporaries);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueNodeTemporaries(const TfLiteOpaqueNode* opaque_node, const int** temporaries,
                                                         int* num_temporaries);
TFL_CAPI_EXPORT int TfLiteOpaqueNodeGetInputTensorIndex(const TfLiteOpaqueNode* opaque_node, int index_of_input);
TFL_CAPI_EXPORT int TfLiteOpaqueNodeGetOutputTensorIndex(const TfLiteOpaqueNode* opaque_node, int index_of_output);

/* --- the context --------------------------------------------------------------------------------------------------- */

/* Takes new_size, whether it succeeds or not. */
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextResizeTensor(TfLiteOpaqueContext* context, TfLiteOpaqueTensor* tensor,
                                                             TfLiteIntArray* new_size);
/* A tensor by its index. Adding tensors may move them: ask again in each call. */
TFL_CAPI_EXPORT TfLiteOpaqueTensor* TfLiteOpaqueContextGetOpaqueTensor(const TfLiteOpaqueContext* opaque_context,
                                                                       int index);
/* Adds a tensor, once a node and not in every prepare. It has no shape until it is resized. */
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextAddTensor(TfLiteOpaqueContext* context,
                                                          TfLiteOpaqueTensorBuilder* builder, int* new_tensor_index);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextGetSizeOfType(TfLiteOpaqueContext* context, TfLiteType type,
                                                              size_t* bytes);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextGetMetadata(TfLiteOpaqueContext* context, const char* name,
                                                            const char** ptr, size_t* bytes);
TFL_CAPI_EXPORT void TfLiteOpaqueContextReportError(TfLiteOpaqueContext* opaque_context, const char* format, ...);
TFL_CAPI_EXPORT void TfLiteOpaqueContextReportErrorVa(TfLiteOpaqueContext* opaque_context, const char* format,
                                                      va_list vlist);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextGetInputs(const TfLiteOpaqueContext* opaque_context,
                                                          const int** inputs, int* num_inputs);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextGetOutputs(const TfLiteOpaqueContext* opaque_context,
                                                           const int** outputs, int* num_outputs);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextGetVariables(const TfLiteOpaqueContext* opaque_context,
                                                             const int** variables, int* num_variables);
TFL_CAPI_EXPORT size_t TfLiteOpaqueContextGetNumNodes(const TfLiteOpaqueContext* opaque_context);
TFL_CAPI_EXPORT size_t TfLiteOpaqueContextGetNumTensors(const TfLiteOpaqueContext* opaque_context);
TFL_CAPI_EXPORT const char* TfLiteOpaqueContextGetName(const TfLiteOpaqueContext* opaque_context);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextGetExternalContext(TfLiteOpaqueContext* opaque_context,
                                                                   void** external_context,
                                                                   TfLiteExternalContextType type);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextGetNodeInitDataMmapInfo(const TfLiteOpaqueContext* context,
                                                                        const TfLiteOpaqueNode* node, int* fd,
                                                                        int64_t* custom_initial_data_offset_in_file,
                                                                        int64_t* custom_initial_data_size);

/* For delegates: an operator that calls one of these is told no. */
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextGetExecutionPlan(TfLiteOpaqueContext* opaque_context,
                                                                 TfLiteIntArray** execution_plan);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextGetNodeAndRegistration(TfLiteOpaqueContext* opaque_context,
                                                                       int node_index, TfLiteOpaqueNode** node,
                                                                       TfLiteOperator** registration_external);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextReplaceNodeSubsetsWithDelegateKernels(
    TfLiteOpaqueContext* opaque_context, TfLiteOperator* registration_external,
    const TfLiteIntArray* nodes_to_replace, TfLiteOpaqueDelegate* opaque_delegate);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextAcquireSubgraphContext(TfLiteOpaqueContext* opaque_context,
                                                                       int subgraph_index,
                                                                       TfLiteOpaqueContext** acquired_opaque_context);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextReleaseSubgraphContext(TfLiteOpaqueContext* opaque_context,
                                                                       int subgraph_index);
TFL_CAPI_EXPORT TfLiteStatus TfLiteOpaqueContextMarkSubgraphAsDelegationSkippable(TfLiteOpaqueContext* opaque_context,
                                                                                  int subgraph_index);

/* --- delegates ----------------------------------------------------------------------------------------------------- */

struct TfLiteOpaqueDelegateBuilder {
  void* data;
  TfLiteStatus (*Prepare)(TfLiteOpaqueContext* context, TfLiteOpaqueDelegate* delegate, void* data);
  TfLiteStatus (*CopyFromBufferHandle)(TfLiteOpaqueContext* context, TfLiteOpaqueDelegate* delegate, void* data,
                                       TfLiteBufferHandle buffer_handle, TfLiteOpaqueTensor* tensor);
  TfLiteStatus (*CopyToBufferHandle)(TfLiteOpaqueContext* context, TfLiteOpaqueDelegate* delegate, void* data,
                                     TfLiteBufferHandle buffer_handle, TfLiteOpaqueTensor* tensor);
  void (*FreeBufferHandle)(TfLiteOpaqueContext* context, TfLiteOpaqueDelegate* delegate, void* data,
                           TfLiteBufferHandle* handle);
  int64_t flags;
};

TFL_CAPI_EXPORT TfLiteOpaqueDelegate* TfLiteOpaqueDelegateCreate(
    const TfLiteOpaqueDelegateBuilder* opaque_delegate_builder);
TFL_CAPI_EXPORT void TfLiteOpaqueDelegateDelete(TfLiteOpaqueDelegate* delegate);
TFL_CAPI_EXPORT void* TfLiteOpaqueDelegateGetData(const TfLiteOpaqueDelegate* delegate);

#ifdef __cplusplus
}
#endif

/* --- checks that report and return --------------------------------------------------------------------------------- */

#ifndef TF_LITE_OPAQUE_KERNEL_LOG
#define TF_LITE_OPAQUE_KERNEL_LOG(context, ...) TfLiteOpaqueContextReportError((context), __VA_ARGS__)
#endif

#ifndef TF_LITE_OPAQUE_MAYBE_KERNEL_LOG
#define TF_LITE_OPAQUE_MAYBE_KERNEL_LOG(context, ...)                                  \
  do {                                                                                 \
    if ((context) != NULL) TfLiteOpaqueContextReportError((context), __VA_ARGS__);     \
  } while (0)
#endif

#ifndef TF_LITE_OPAQUE_ENSURE_MSG
#define TF_LITE_OPAQUE_ENSURE_MSG(context, value, msg)                    \
  do {                                                                    \
    if (!(value)) {                                                       \
      TF_LITE_OPAQUE_KERNEL_LOG((context), "%s %s", __FILE__, (msg));     \
      return kTfLiteError;                                                \
    }                                                                     \
  } while (0)
#endif

#ifndef TF_LITE_OPAQUE_ENSURE
#define TF_LITE_OPAQUE_ENSURE(context, a)                                                         \
  do {                                                                                            \
    if (!(a)) {                                                                                   \
      TF_LITE_OPAQUE_KERNEL_LOG((context), "%s:%d: %s was not true.", __FILE__, __LINE__, #a);    \
      return kTfLiteError;                                                                        \
    }                                                                                             \
  } while (0)
#endif

#ifndef TF_LITE_OPAQUE_ENSURE_EQ
#define TF_LITE_OPAQUE_ENSURE_EQ(context, a, b)                                                                     \
  do {                                                                                                              \
    if ((a) != (b)) {                                                                                               \
      TF_LITE_OPAQUE_KERNEL_LOG((context), "%s:%d: %s != %s (%d != %d)", __FILE__, __LINE__, #a, #b, (a), (b));     \
      return kTfLiteError;                                                                                          \
    }                                                                                                               \
  } while (0)
#endif

#ifndef TF_LITE_OPAQUE_ENSURE_TYPES_EQ
#define TF_LITE_OPAQUE_ENSURE_TYPES_EQ(context, a, b)                                                               \
  do {                                                                                                              \
    if ((a) != (b)) {                                                                                               \
      TF_LITE_OPAQUE_KERNEL_LOG((context), "%s:%d: %s != %s (%s != %s)", __FILE__, __LINE__, #a, #b,                \
                                TfLiteTypeGetName(a), TfLiteTypeGetName(b));                                        \
      return kTfLiteError;                                                                                          \
    }                                                                                                               \
  } while (0)
#endif

#ifndef TF_LITE_OPAQUE_ENSURE_NEAR
#define TF_LITE_OPAQUE_ENSURE_NEAR(context, a, b, epsilon)                                                          \
  do {                                                                                                              \
    const double ow_difference_ = (double)(a) - (double)(b);                                                        \
    if (!(ow_difference_ <= (double)(epsilon) && -ow_difference_ <= (double)(epsilon))) {                           \
      TF_LITE_OPAQUE_KERNEL_LOG((context), "%s:%d: %s not near %s (%f != %f)", __FILE__, __LINE__, #a, #b,          \
                                (double)(a), (double)(b));                                                          \
      return kTfLiteError;                                                                                          \
    }                                                                                                               \
  } while (0)
#endif

#endif
