/* Further functions by which programs run models; see c_api.h: none of these works here. */
#ifndef OPWRIGHT_LITE_C_API_EXPERIMENTAL_H_
#define OPWRIGHT_LITE_C_API_EXPERIMENTAL_H_

#include "c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

TFL_CAPI_EXPORT TfLiteStatus TfLiteInterpreterResetVariableTensors(TfLiteInterpreter* interpreter);
TFL_CAPI_EXPORT int32_t TfLiteInterpreterGetVariableTensorCount(const TfLiteInterpreter* interpreter);
TFL_CAPI_EXPORT TfLiteTensor* TfLiteInterpreterGetVariableTensor(
    const TfLiteInterpreter* interpreter, int32_t variable_index);
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsAddBuiltinOp(
    TfLiteInterpreterOptions* options, TfLiteBuiltinOperator op, const TfLiteRegistration* registration,
    int32_t min_version, int32_t max_version);
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsAddCustomOp(
    TfLiteInterpreterOptions* options, const char* name, const TfLiteRegistration* registration, int32_t min_version,
    int32_t max_version);
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsSetOpResolverExternal(
    TfLiteInterpreterOptions* options, const TfLiteOperator* (*find_builtin_op)(void*, int, int),
    const TfLiteOperator* (*find_custom_op)(void*, const char*, int), void* op_resolver_user_data);
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsSetOpResolverExternalWithFallback(
    TfLiteInterpreterOptions* options, const TfLiteOperator* (*find_builtin_op_external)(void*, int, int),
    const TfLiteOperator* (*find_custom_op_external)(void*, const char*, int),
    const TfLiteRegistration* (*find_builtin_op)(void*, TfLiteBuiltinOperator, int),
    const TfLiteRegistration* (*find_custom_op)(void*, const char*, int), void* op_resolver_user_data);
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsSetOpResolver(
    TfLiteInterpreterOptions* options, const TfLiteRegistration* (*find_builtin_op)(void*, TfLiteBuiltinOperator, int),
    const TfLiteRegistration* (*find_custom_op)(void*, const char*, int), void* op_resolver_user_data);
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsSetOpResolverV3(
    TfLiteInterpreterOptions* options,
    const TfLiteRegistration_V3* (*find_builtin_op_v3)(void*, TfLiteBuiltinOperator, int),
    const TfLiteRegistration_V3* (*find_custom_op_v3)(void*, const char*, int), void* op_resolver_user_data);
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsSetOpResolverV2(
    TfLiteInterpreterOptions* options,
    const TfLiteRegistration_V2* (*find_builtin_op_v2)(void*, TfLiteBuiltinOperator, int),
    const TfLiteRegistration_V2* (*find_custom_op_v2)(void*, const char*, int), void* op_resolver_user_data);
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsSetOpResolverV1(
    TfLiteInterpreterOptions* options,
    const TfLiteRegistration_V1* (*find_builtin_op_v1)(void*, TfLiteBuiltinOperator, int),
    const TfLiteRegistration_V1* (*find_custom_op_v1)(void*, const char*, int), void* op_resolver_user_data);
TFL_CAPI_EXPORT TfLiteInterpreter* TfLiteInterpreterCreateWithSelectedOps(
    const TfLiteModel* model, const TfLiteInterpreterOptions* options);
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsSetUseNNAPI(TfLiteInterpreterOptions* options, bool enable);
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsSetEnableDelegateFallback(TfLiteInterpreterOptions* options, bool enable);
TFL_CAPI_EXPORT TfLiteStatus TfLiteInterpreterModifyGraphWithDelegate(
    const TfLiteInterpreter* interpreter, TfLiteDelegate* delegate);
TFL_CAPI_EXPORT int32_t TfLiteInterpreterGetInputTensorIndex(const TfLiteInterpreter* interpreter, int32_t input_index);
TFL_CAPI_EXPORT int32_t TfLiteInterpreterGetOutputTensorIndex(
    const TfLiteInterpreter* interpreter, int32_t output_index);
TFL_CAPI_EXPORT TfLiteStatus TfLiteInterpreterSetCustomAllocationForTensor(
    TfLiteInterpreter* interpreter, int tensor_index, const TfLiteCustomAllocation* allocation, int64_t flags);
TFL_CAPI_EXPORT TfLiteStatus TfLiteInterpreterSetBufferHandle(
    TfLiteInterpreter* interpreter, TfLiteTensor* tensor, TfLiteBufferHandle buffer_handle,
    TfLiteOpaqueDelegate* delegate);
TFL_CAPI_EXPORT TfLiteStatus TfLiteInterpreterGetBufferHandle(
    TfLiteInterpreter* interpreter, int tensor_index, TfLiteBufferHandle* buffer_handle,
    TfLiteOpaqueDelegate** delegate);
TFL_CAPI_EXPORT void TfLiteSetAllowBufferHandleOutput(
    const TfLiteInterpreter* interpreter, bool allow_buffer_handle_output);
TFL_CAPI_EXPORT TfLiteStatus TfLiteSignatureRunnerCancel(TfLiteSignatureRunner* signature_runner);
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsSetTelemetryProfiler(
    TfLiteInterpreterOptions* options, struct TfLiteTelemetryProfilerStruct* profiler);
TFL_CAPI_EXPORT TfLiteStatus TfLiteInterpreterEnsureTensorDataIsReadable(
    TfLiteInterpreter* interpreter, int tensor_index);

#ifdef __cplusplus
}
#endif

#endif
