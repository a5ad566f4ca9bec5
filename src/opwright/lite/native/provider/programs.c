/* Functions by which programs in C run models: not here, where Python does. Each reports that, and gives an error. */
#include "opwright/lite/c_api_experimental.h"
#include "provider.h"

#undef TfLiteInterpreterOptionsAddRegistrationExternal
#pragma GCC diagnostic ignored "-Wunused-parameter"

#define API_VERSION "2.21.0" /* the release of TensorFlow whose interface for operators this is */

const char* TfLiteVersion(void) { return API_VERSION; }
const char* TfLiteExtensionApisVersion(void) { return API_VERSION; }
int TfLiteSchemaVersion(void) { return 3; }

#define NOT_HERE(Result, name, parameters, result)                                                 \
  Result name parameters {                                                                         \
    ow_misuse(#name, "operators cannot run models of their own here: Python runs this one");       \
    return result;                                                                                 \
  }

NOT_HERE(TfLiteModel*, TfLiteModelCreate, (const void* model_data, size_t model_size), NULL)
NOT_HERE(TfLiteModel*, TfLiteModelCreateWithErrorReporter,
         (const void* model_data, size_t model_size, void (*reporter)(void*, const char*, va_list), void* user_data),
          NULL)
NOT_HERE(TfLiteModel*, TfLiteModelCreateFromFile, (const char* model_path), NULL)
NOT_HERE(TfLiteModel*, TfLiteModelCreateFromFileWithErrorReporter,
         (const char* model_path, void (*reporter)(void*, const char*, va_list), void* user_data), NULL)
NOT_HERE(void, TfLiteModelDelete, (TfLiteModel* model), )
NOT_HERE(TfLiteInterpreterOptions*, TfLiteInterpreterOptionsCreate, (void), NULL)
NOT_HERE(TfLiteInterpreterOptions*, TfLiteInterpreterOptionsCopy, (const TfLiteInterpreterOptions* from), NULL)
NOT_HERE(void, TfLiteInterpreterOptionsDelete, (TfLiteInterpreterOptions* options), )
NOT_HERE(void, TfLiteInterpreterOptionsSetNumThreads, (TfLiteInterpreterOptions* options, int32_t num_threads), )
NOT_HERE(void, TfLiteInterpreterOptionsAddDelegate,
         (TfLiteInterpreterOptions* options, TfLiteOpaqueDelegate* delegate), )
NOT_HERE(void, TfLiteInterpreterOptionsSetErrorReporter,
         (TfLiteInterpreterOptions* options, void (*reporter)(void*, const char*, va_list), void* user_data), )
NOT_HERE(void, TfLiteInterpreterOptionsAddOperator, (TfLiteInterpreterOptions* options, TfLiteOperator* registration), )
NOT_HERE(TfLiteStatus, TfLiteInterpreterOptionsEnableCancellation,
         (TfLiteInterpreterOptions* options, bool enable), kTfLiteError)
NOT_HERE(TfLiteInterpreter*, TfLiteInterpreterCreate,
         (const TfLiteModel* model, const TfLiteInterpreterOptions* optional_options), NULL)
NOT_HERE(void, TfLiteInterpreterDelete, (TfLiteInterpreter* interpreter), )
NOT_HERE(int32_t, TfLiteInterpreterGetInputTensorCount, (const TfLiteInterpreter* interpreter), 0)
NOT_HERE(const int*, TfLiteInterpreterInputTensorIndices, (const TfLiteInterpreter* interpreter), NULL)
NOT_HERE(TfLiteTensor*, TfLiteInterpreterGetInputTensor,
         (const TfLiteInterpreter* interpreter, int32_t input_index), NULL)
NOT_HERE(TfLiteStatus, TfLiteInterpreterResizeInputTensor,
         (TfLiteInterpreter* interpreter, int32_t input_index, const int* input_dims, int32_t input_dims_size),
          kTfLiteError)
NOT_HERE(TfLiteStatus, TfLiteInterpreterAllocateTensors, (TfLiteInterpreter* interpreter), kTfLiteError)
NOT_HERE(TfLiteStatus, TfLiteInterpreterInvoke, (TfLiteInterpreter* interpreter), kTfLiteError)
NOT_HERE(int32_t, TfLiteInterpreterGetOutputTensorCount, (const TfLiteInterpreter* interpreter), 0)
NOT_HERE(const int*, TfLiteInterpreterOutputTensorIndices, (const TfLiteInterpreter* interpreter), NULL)
NOT_HERE(const TfLiteTensor*, TfLiteInterpreterGetOutputTensor,
         (const TfLiteInterpreter* interpreter, int32_t output_index), NULL)
NOT_HERE(TfLiteTensor*, TfLiteInterpreterGetTensor, (const TfLiteInterpreter* interpreter, int index), NULL)
NOT_HERE(TfLiteStatus, TfLiteInterpreterCancel, (const TfLiteInterpreter* interpreter), kTfLiteError)
NOT_HERE(int32_t, TfLiteInterpreterGetSignatureCount, (const TfLiteInterpreter* interpreter), 0)
NOT_HERE(const char*, TfLiteInterpreterGetSignatureKey,
         (const TfLiteInterpreter* interpreter, int32_t signature_index), NULL)
NOT_HERE(TfLiteSignatureRunner*, TfLiteInterpreterGetSignatureRunner,
         (const TfLiteInterpreter* interpreter, const char* signature_key), NULL)
NOT_HERE(size_t, TfLiteSignatureRunnerGetInputCount, (const TfLiteSignatureRunner* signature_runner), 0)
NOT_HERE(const char*, TfLiteSignatureRunnerGetInputName,
         (const TfLiteSignatureRunner* signature_runner, int32_t input_index), NULL)
NOT_HERE(TfLiteStatus, TfLiteSignatureRunnerResizeInputTensor,
         (TfLiteSignatureRunner* signature_runner, const char* input_name, const int* input_dims,
          int32_t input_dims_size), kTfLiteError)
NOT_HERE(TfLiteStatus, TfLiteSignatureRunnerAllocateTensors, (TfLiteSignatureRunner* signature_runner), kTfLiteError)
NOT_HERE(TfLiteTensor*, TfLiteSignatureRunnerGetInputTensor,
         (TfLiteSignatureRunner* signature_runner, const char* input_name), NULL)
NOT_HERE(TfLiteStatus, TfLiteSignatureRunnerInvoke, (TfLiteSignatureRunner* signature_runner), kTfLiteError)
NOT_HERE(size_t, TfLiteSignatureRunnerGetOutputCount, (const TfLiteSignatureRunner* signature_runner), 0)
NOT_HERE(const char*, TfLiteSignatureRunnerGetOutputName,
         (const TfLiteSignatureRunner* signature_runner, int32_t output_index), NULL)
NOT_HERE(const TfLiteTensor*, TfLiteSignatureRunnerGetOutputTensor,
         (const TfLiteSignatureRunner* signature_runner, const char* output_name), NULL)
NOT_HERE(void, TfLiteSignatureRunnerDelete, (TfLiteSignatureRunner* signature_runner), )
NOT_HERE(TfLiteStatus, TfLiteInterpreterResetVariableTensors, (TfLiteInterpreter* interpreter), kTfLiteError)
NOT_HERE(int32_t, TfLiteInterpreterGetVariableTensorCount, (const TfLiteInterpreter* interpreter), 0)
NOT_HERE(TfLiteTensor*, TfLiteInterpreterGetVariableTensor,
         (const TfLiteInterpreter* interpreter, int32_t variable_index), NULL)
NOT_HERE(void, TfLiteInterpreterOptionsAddBuiltinOp,
         (TfLiteInterpreterOptions* options, TfLiteBuiltinOperator op, const TfLiteRegistration* registration,
          int32_t min_version, int32_t max_version), )
NOT_HERE(void, TfLiteInterpreterOptionsAddCustomOp,
         (TfLiteInterpreterOptions* options, const char* name, const TfLiteRegistration* registration,
          int32_t min_version, int32_t max_version), )
NOT_HERE(void, TfLiteInterpreterOptionsSetOpResolverExternal,
         (TfLiteInterpreterOptions* options, const TfLiteOperator* (*find_builtin_op)(void*, int, int),
          const TfLiteOperator* (*find_custom_op)(void*, const char*, int), void* op_resolver_user_data), )
NOT_HERE(void, TfLiteInterpreterOptionsSetOpResolverExternalWithFallback,
         (TfLiteInterpreterOptions* options, const TfLiteOperator* (*find_builtin_op_external)(void*, int, int),
          const TfLiteOperator* (*find_custom_op_external)(void*, const char*, int),
          const TfLiteRegistration* (*find_builtin_op)(void*, TfLiteBuiltinOperator, int),
          const TfLiteRegistration* (*find_custom_op)(void*, const char*, int), void* op_resolver_user_data), )
NOT_HERE(void, TfLiteInterpreterOptionsSetOpResolver,
         (TfLiteInterpreterOptions* options, const TfLiteRegistration* (*find_builtin_op)(void*, TfLiteBuiltinOperator,
          int), const TfLiteRegistration* (*find_custom_op)(void*, const char*, int), void* op_resolver_user_data), )
NOT_HERE(void, TfLiteInterpreterOptionsSetOpResolverV3,
         (TfLiteInterpreterOptions* options, const TfLiteRegistration_V3* (*find_builtin_op_v3)(void*,
          TfLiteBuiltinOperator, int), const TfLiteRegistration_V3* (*find_custom_op_v3)(void*, const char*, int),
          void* op_resolver_user_data), )
NOT_HERE(void, TfLiteInterpreterOptionsSetOpResolverV2,
         (TfLiteInterpreterOptions* options, const TfLiteRegistration_V2* (*find_builtin_op_v2)(void*,
          TfLiteBuiltinOperator, int), const TfLiteRegistration_V2* (*find_custom_op_v2)(void*, const char*, int),
          void* op_resolver_user_data), )
NOT_HERE(void, TfLiteInterpreterOptionsSetOpResolverV1,
         (TfLiteInterpreterOptions* options, const TfLiteRegistration_V1* (*find_builtin_op_v1)(void*,
          TfLiteBuiltinOperator, int), const TfLiteRegistration_V1* (*find_custom_op_v1)(void*, const char*, int),
          void* op_resolver_user_data), )
NOT_HERE(TfLiteInterpreter*, TfLiteInterpreterCreateWithSelectedOps,
         (const TfLiteModel* model, const TfLiteInterpreterOptions* options), NULL)
NOT_HERE(void, TfLiteInterpreterOptionsSetUseNNAPI, (TfLiteInterpreterOptions* options, bool enable), )
NOT_HERE(void, TfLiteInterpreterOptionsSetEnableDelegateFallback, (TfLiteInterpreterOptions* options, bool enable), )
NOT_HERE(TfLiteStatus, TfLiteInterpreterModifyGraphWithDelegate,
         (const TfLiteInterpreter* interpreter, TfLiteDelegate* delegate), kTfLiteError)
NOT_HERE(int32_t, TfLiteInterpreterGetInputTensorIndex, (const TfLiteInterpreter* interpreter, int32_t input_index), -1)
NOT_HERE(int32_t, TfLiteInterpreterGetOutputTensorIndex,
         (const TfLiteInterpreter* interpreter, int32_t output_index), -1)
NOT_HERE(TfLiteStatus, TfLiteInterpreterSetCustomAllocationForTensor,
         (TfLiteInterpreter* interpreter, int tensor_index, const TfLiteCustomAllocation* allocation, int64_t flags),
          kTfLiteError)
NOT_HERE(TfLiteStatus, TfLiteInterpreterSetBufferHandle,
         (TfLiteInterpreter* interpreter, TfLiteTensor* tensor, TfLiteBufferHandle buffer_handle,
          TfLiteOpaqueDelegate* delegate), kTfLiteError)
NOT_HERE(TfLiteStatus, TfLiteInterpreterGetBufferHandle,
         (TfLiteInterpreter* interpreter, int tensor_index, TfLiteBufferHandle* buffer_handle,
          TfLiteOpaqueDelegate** delegate), kTfLiteError)
NOT_HERE(void, TfLiteSetAllowBufferHandleOutput,
         (const TfLiteInterpreter* interpreter, bool allow_buffer_handle_output), )
NOT_HERE(TfLiteStatus, TfLiteSignatureRunnerCancel, (TfLiteSignatureRunner* signature_runner), kTfLiteError)
NOT_HERE(void, TfLiteInterpreterOptionsSetTelemetryProfiler,
         (TfLiteInterpreterOptions* options, struct TfLiteTelemetryProfilerStruct* profiler), )
NOT_HERE(TfLiteStatus, TfLiteInterpreterEnsureTensorDataIsReadable,
         (TfLiteInterpreter* interpreter, int tensor_index), kTfLiteError)

OW_EXPORT void TfLiteInterpreterOptionsAddRegistrationExternal(TfLiteInterpreterOptions* options, TfLiteOperator* op);
NOT_HERE(void, TfLiteInterpreterOptionsAddRegistrationExternal,
         (TfLiteInterpreterOptions* options, TfLiteOperator* op), )
