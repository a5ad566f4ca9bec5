/* Functions of the C interface on classic tensors, and those by which programs run models.

   Opwright runs models from Python, so those of the second kind do nothing here: they report that and give an error.
   They are declared, and there, so that a library that has its operators and such a program in one loads. */
#ifndef OPWRIGHT_LITE_C_API_H_
#define OPWRIGHT_LITE_C_API_H_

#include <stdarg.h>

#include "common.h"
#include "operator.h"

#ifdef __cplusplus
extern "C" {
#endif

TFL_CAPI_EXPORT const char* TfLiteVersion(void);
TFL_CAPI_EXPORT const char* TfLiteExtensionApisVersion(void);
TFL_CAPI_EXPORT int TfLiteSchemaVersion(void);

/* --- tensors ------------------------------------------------------------------------------------------------------- */

TFL_CAPI_EXPORT TfLiteType TfLiteTensorType(const TfLiteTensor* tensor);
TFL_CAPI_EXPORT int32_t TfLiteTensorNumDims(const TfLiteTensor* tensor);
TFL_CAPI_EXPORT int32_t TfLiteTensorDim(const TfLiteTensor* tensor, int32_t dim_index);
TFL_CAPI_EXPORT size_t TfLiteTensorByteSize(const TfLiteTensor* tensor);
TFL_CAPI_EXPORT void* TfLiteTensorData(const TfLiteTensor* tensor);
TFL_CAPI_EXPORT const char* TfLiteTensorName(const TfLiteTensor* tensor);
TFL_CAPI_EXPORT TfLiteQuantizationParams TfLiteTensorQuantizationParams(const TfLiteTensor* tensor);
TFL_CAPI_EXPORT TfLiteStatus TfLiteTensorCopyFromBuffer(
    TfLiteTensor* tensor, const void* input_data, size_t input_data_size);
TFL_CAPI_EXPORT TfLiteStatus TfLiteTensorCopyToBuffer(
    const TfLiteTensor* output_tensor, void* output_data, size_t output_data_size);

/* --- programs: none of these works here ---------------------------------------------------------------------------- */

typedef struct TfLiteModel TfLiteModel;
typedef struct TfLiteInterpreterOptions TfLiteInterpreterOptions;
typedef struct TfLiteInterpreter TfLiteInterpreter;
typedef struct TfLiteSignatureRunner TfLiteSignatureRunner;
struct TfLiteTelemetryProfilerStruct;

TFL_CAPI_EXPORT TfLiteModel* TfLiteModelCreate(const void* model_data, size_t model_size);
TFL_CAPI_EXPORT TfLiteModel* TfLiteModelCreateWithErrorReporter(
    const void* model_data, size_t model_size, void (*reporter)(void*, const char*, va_list), void* user_data);
TFL_CAPI_EXPORT TfLiteModel* TfLiteModelCreateFromFile(const char* model_path);
TFL_CAPI_EXPORT TfLiteModel* TfLiteModelCreateFromFileWithErrorReporter(
    const char* model_path, void (*reporter)(void*, const char*, va_list), void* user_data);
TFL_CAPI_EXPORT void TfLiteModelDelete(TfLiteModel* model);
TFL_CAPI_EXPORT TfLiteInterpreterOptions* TfLiteInterpreterOptionsCreate(void);
TFL_CAPI_EXPORT TfLiteInterpreterOptions* TfLiteInterpreterOptionsCopy(const TfLiteInterpreterOptions* from);
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsDelete(TfLiteInterpreterOptions* options);
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsSetNumThreads(TfLiteInterpreterOptions* options, int32_t num_threads);
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsAddDelegate(
    TfLiteInterpreterOptions* options, TfLiteOpaqueDelegate* delegate);
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsSetErrorReporter(
    TfLiteInterpreterOptions* options, void (*reporter)(void*, const char*, va_list), void* user_data);
TFL_CAPI_EXPORT void TfLiteInterpreterOptionsAddOperator(
    TfLiteInterpreterOptions* options, TfLiteOperator* registration);
TFL_CAPI_EXPORT TfLiteStatus TfLiteInterpreterOptionsEnableCancellation(TfLiteInterpreterOptions* options, bool enable);
TFL_CAPI_EXPORT TfLiteInterpreter* TfLiteInterpreterCreate(
    const TfLiteModel* model, const TfLiteInterpreterOptions* optional_options);
TFL_CAPI_EXPORT void TfLiteInterpreterDelete(TfLiteInterpreter* interpreter);
TFL_CAPI_EXPORT int32_t TfLiteInterpreterGetInputTensorCount(const TfLiteInterpreter* interpreter);
TFL_CAPI_EXPORT const int* TfLiteInterpreterInputTensorIndices(const TfLiteInterpreter* interpreter);
TFL_CAPI_EXPORT TfLiteTensor* TfLiteInterpreterGetInputTensor(
    const TfLiteInterpreter* interpreter, int32_t input_index);
TFL_CAPI_EXPORT TfLiteStatus TfLiteInterpreterResizeInputTensor(
    TfLiteInterpreter* interpreter, int32_t input_index, const int* input_dims, int32_t input_dims_size);
TFL_CAPI_EXPORT TfLiteStatus TfLiteInterpreterAllocateTensors(TfLiteInterpreter* interpreter);
TFL_CAPI_EXPORT TfLiteStatus TfLiteInterpreterInvoke(TfLiteInterpreter* interpreter);
TFL_CAPI_EXPORT int32_t TfLiteInterpreterGetOutputTensorCount(const TfLiteInterpreter* interpreter);
TFL_CAPI_EXPORT const int* TfLiteInterpreterOutputTensorIndices(const TfLiteInterpreter* interpreter);
TFL_CAPI_EXPORT const TfLiteTensor* TfLiteInterpreterGetOutputTensor(
    const TfLiteInterpreter* interpreter, int32_t output_index);
TFL_CAPI_EXPORT TfLiteTensor* TfLiteInterpreterGetTensor(const TfLiteInterpreter* interpreter, int index);
TFL_CAPI_EXPORT TfLiteStatus TfLiteInterpreterCancel(const TfLiteInterpreter* interpreter);
TFL_CAPI_EXPORT int32_t TfLiteInterpreterGetSignatureCount(const TfLiteInterpreter* interpreter);
TFL_CAPI_EXPORT const char* TfLiteInterpreterGetSignatureKey(
    const TfLiteInterpreter* interpreter, int32_t signature_index);
TFL_CAPI_EXPORT TfLiteSignatureRunner* TfLiteInterpreterGetSignatureRunner(
    const TfLiteInterpreter* interpreter, const char* signature_key);
TFL_CAPI_EXPORT size_t TfLiteSignatureRunnerGetInputCount(const TfLiteSignatureRunner* signature_runner);
TFL_CAPI_EXPORT const char* TfLiteSignatureRunnerGetInputName(
    const TfLiteSignatureRunner* signature_runner, int32_t input_index);
TFL_CAPI_EXPORT TfLiteStatus TfLiteSignatureRunnerResizeInputTensor(
    TfLiteSignatureRunner* signature_runner, const char* input_name, const int* input_dims, int32_t input_dims_size);
TFL_CAPI_EXPORT TfLiteStatus TfLiteSignatureRunnerAllocateTensors(TfLiteSignatureRunner* signature_runner);
TFL_CAPI_EXPORT TfLiteTensor* TfLiteSignatureRunnerGetInputTensor(
    TfLiteSignatureRunner* signature_runner, const char* input_name);
TFL_CAPI_EXPORT TfLiteStatus TfLiteSignatureRunnerInvoke(TfLiteSignatureRunner* signature_runner);
TFL_CAPI_EXPORT size_t TfLiteSignatureRunnerGetOutputCount(const TfLiteSignatureRunner* signature_runner);
TFL_CAPI_EXPORT const char* TfLiteSignatureRunnerGetOutputName(
    const TfLiteSignatureRunner* signature_runner, int32_t output_index);
TFL_CAPI_EXPORT const TfLiteTensor* TfLiteSignatureRunnerGetOutputTensor(
    const TfLiteSignatureRunner* signature_runner, const char* output_name);
TFL_CAPI_EXPORT void TfLiteSignatureRunnerDelete(TfLiteSignatureRunner* signature_runner);

#ifdef __cplusplus
}
#endif

#define TfLiteInterpreterOptionsAddRegistrationExternal TfLiteInterpreterOptionsAddOperator

#endif
