/* Asynchronous kernels. An operator may bring one; a run time on the CPU never asks for it.

   Lives here: kernels, tasks, wrapped buffers and fences, attribute maps. */
#ifndef OPWRIGHT_LITE_ASYNC_H_
#define OPWRIGHT_LITE_ASYNC_H_

#include "opaque.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct TfLiteExecutionTask TfLiteExecutionTask;
typedef struct TfLiteBackendBuffer TfLiteBackendBuffer;
typedef struct TfLiteSynchronization TfLiteSynchronization;
typedef struct TfLiteAttributeMap TfLiteAttributeMap;

typedef enum TfLiteIoType {
  kTfLiteIoTypeUnknown = 0,
  kTfLiteIoTypeInput = 1,
  kTfLiteIoTypeOutput = 2
} TfLiteIoType;

typedef enum TfLiteAttrMapType {
  kTfLiteAttrMapTypeUnknown = 0,
  kTfLiteAttrMapTypeBuffer = 1,
  kTfLiteAttrMapTypeSync = 2
} TfLiteAttrMapType;

typedef enum TfLiteBufferAttrKey {
  kTfLiteBufferAttrKeyUnknown = 0,
  kTfLiteBufferAttrKeyResourceTypeName = 1,
  kTfLiteBufferAttrKeyAlignment = 2,
  kTfLiteBufferAttrKeyPadding = 3,
  kTfLiteBufferAttrKeyOffset = 4,
  kTfLiteBufferAttrKeySize = 5,
  kTfLiteBufferAttrKeyCurrentHostCoherencyState = 6,
  kTfLiteBufferAttrKeyPreferredHostCoherencyState = 7,
  kTfLiteBufferAttrKeyCurrentHostCacheState = 8,
  kTfLiteBufferAttrKeyPreferredHostCacheState = 9
} TfLiteBufferAttrKey;

typedef enum TfLiteSynchronizationAttrKey {
  kTfLiteSynchronizationAttrKeyUnknown = 0,
  kTfLiteSynchronizationAttrKeyObjectTypeName = 1
} TfLiteSynchronizationAttrKey;

/* --- kernels: the callbacks of an operator that runs on its own time ---------------------------------------------- */

TFL_CAPI_EXPORT TfLiteAsyncKernel* TfLiteAsyncKernelCreate(void* kernel_data);
TFL_CAPI_EXPORT void* TfLiteAsyncKernelGetKernelData(const TfLiteAsyncKernel* async_kernel);
TFL_CAPI_EXPORT void TfLiteAsyncKernelDelete(TfLiteAsyncKernel* kernel);
TFL_CAPI_EXPORT void TfLiteAsyncKernelSetRegisterBuffer(
    TfLiteAsyncKernel* async_kernel,
    TfLiteStatus (*register_buffer)(TfLiteAsyncKernel*, TfLiteOpaqueContext*, TfLiteIoType, const TfLiteBackendBuffer*, const TfLiteAttributeMap*, TfLiteBufferHandle));
TFL_CAPI_EXPORT void TfLiteAsyncKernelSetRegisterBufferSlice(
    TfLiteAsyncKernel* async_kernel,
    TfLiteStatus (*register_buffer_slice)(TfLiteAsyncKernel*, TfLiteOpaqueContext*, TfLiteBufferHandle, const TfLiteAttributeMap*, TfLiteBufferHandle));
TFL_CAPI_EXPORT void TfLiteAsyncKernelSetUnregisterBuffer(
    TfLiteAsyncKernel* async_kernel,
    TfLiteStatus (*unregister_buffer)(TfLiteAsyncKernel*, TfLiteOpaqueContext*, TfLiteBufferHandle));
TFL_CAPI_EXPORT void TfLiteAsyncKernelSetSupportedBufferTypes(
    TfLiteAsyncKernel* async_kernel,
    void (*supported_buffer_types)(const TfLiteAsyncKernel*, TfLiteIoType, const char*const**, size_t*));
TFL_CAPI_EXPORT void TfLiteAsyncKernelSetSupportedSynchronizations(
    TfLiteAsyncKernel* async_kernel,
    void (*supported_synchronizations)(const TfLiteAsyncKernel*, TfLiteIoType, const char*const**, size_t*));
TFL_CAPI_EXPORT void TfLiteAsyncKernelSetReconcileRestrictions(
    TfLiteAsyncKernel* async_kernel,
    bool (*reconcile_restrictions)(const TfLiteAsyncKernel*, const TfLiteOpaqueContext*, const TfLiteOpaqueNode*, int, const TfLiteAttributeMap*, TfLiteAttributeMap*, TfLiteAttributeMap*));
TFL_CAPI_EXPORT void TfLiteAsyncKernelSetSetAttributes(
    TfLiteAsyncKernel* async_kernel,
    TfLiteStatus (*set_attributes)(TfLiteAsyncKernel*, TfLiteOpaqueContext*, TfLiteOpaqueNode*, int, const TfLiteAttributeMap*));
TFL_CAPI_EXPORT void TfLiteAsyncKernelSetSetBufferAttributes(
    TfLiteAsyncKernel* async_kernel,
    TfLiteStatus (*set_buffer_attributes)(TfLiteAsyncKernel*, const TfLiteBackendBuffer*, const TfLiteAttributeMap*));
TFL_CAPI_EXPORT void TfLiteAsyncKernelSetGetBufferAttributes(
    TfLiteAsyncKernel* async_kernel,
    TfLiteStatus (*get_buffer_attributes)(TfLiteAsyncKernel*, const TfLiteBackendBuffer*, TfLiteAttributeMap*));
TFL_CAPI_EXPORT void TfLiteAsyncKernelSetPrepare(
    TfLiteAsyncKernel* async_kernel,
    TfLiteStatus (*prepare)(TfLiteAsyncKernel*, TfLiteOpaqueContext*, TfLiteOpaqueNode*));
TFL_CAPI_EXPORT void TfLiteAsyncKernelSetEval(
    TfLiteAsyncKernel* async_kernel,
    TfLiteStatus (*eval)(TfLiteAsyncKernel*, TfLiteOpaqueContext*, TfLiteOpaqueNode*, TfLiteExecutionTask*));
TFL_CAPI_EXPORT void TfLiteAsyncKernelSetWait(
    TfLiteAsyncKernel* async_kernel,
    TfLiteStatus (*wait)(TfLiteAsyncKernel*, TfLiteOpaqueContext*, TfLiteExecutionTask*));
TFL_CAPI_EXPORT void TfLiteAsyncKernelSetFinish(
    TfLiteAsyncKernel* async_kernel,
    TfLiteStatus (*finish)(TfLiteAsyncKernel*, TfLiteOpaqueContext*, TfLiteExecutionTask*));

/* --- tasks: what a kernel is given to run ------------------------------------------------------------------------- */

TFL_CAPI_EXPORT TfLiteStatus TfLiteExecutionTaskSetBuffer(
    TfLiteExecutionTask* task, TfLiteIoType io_type, const char* tensor_signature_name, TfLiteBufferHandle handle);
TFL_CAPI_EXPORT TfLiteStatus TfLiteExecutionTaskSetBufferByIndex(
    TfLiteExecutionTask* task, int tensor_index, TfLiteBufferHandle handle);
TFL_CAPI_EXPORT TfLiteBufferHandle TfLiteExecutionTaskGetBufferByName(
    const TfLiteExecutionTask* task, TfLiteIoType io_type, const char* tensor_signature_name);
TFL_CAPI_EXPORT TfLiteBufferHandle TfLiteExecutionTaskGetBufferByIndex(
    const TfLiteExecutionTask* task, int tensor_index);
TFL_CAPI_EXPORT TfLiteStatus TfLiteExecutionTaskSetSync(
    TfLiteExecutionTask* task, TfLiteIoType io_type, const char* tensor_signature_name, TfLiteSynchronization* sync);
TFL_CAPI_EXPORT TfLiteStatus TfLiteExecutionTaskSetSyncByIndex(
    TfLiteExecutionTask* task, int tensor_index, TfLiteSynchronization* sync);
TFL_CAPI_EXPORT TfLiteSynchronization* TfLiteExecutionTaskGetSyncByName(
    const TfLiteExecutionTask* task, TfLiteIoType io_type, const char* tensor_signature_name);
TFL_CAPI_EXPORT TfLiteSynchronization* TfLiteExecutionTaskGetSyncByIndex(
    const TfLiteExecutionTask* task, int tensor_index);
TFL_CAPI_EXPORT void* TfLiteExecutionTaskGetDelegateExecutionData(
    const TfLiteExecutionTask* task, TfLiteAsyncKernel* kernel);
TFL_CAPI_EXPORT void TfLiteExecutionTaskSetDelegateExecutionData(
    TfLiteExecutionTask* task, TfLiteAsyncKernel* kernel, void* data);
TFL_CAPI_EXPORT TfLiteStatus TfLiteExecutionTaskGetStatus(const TfLiteExecutionTask* task);
TFL_CAPI_EXPORT void TfLiteExecutionTaskSetStatus(TfLiteExecutionTask* task, TfLiteStatus status);

/* --- buffers and fences of a platform, wrapped -------------------------------------------------------------------- */

TFL_CAPI_EXPORT TfLiteBackendBuffer* TfLiteBackendBufferCreate(void);
TFL_CAPI_EXPORT void TfLiteBackendBufferDelete(TfLiteBackendBuffer* buf);
TFL_CAPI_EXPORT void TfLiteBackendBufferSetPtr(TfLiteBackendBuffer* buf, void* ptr);
TFL_CAPI_EXPORT void* TfLiteBackendBufferGetPtr(const TfLiteBackendBuffer* buf);
TFL_CAPI_EXPORT TfLiteSynchronization* TfLiteSynchronizationCreate(void);
TFL_CAPI_EXPORT void TfLiteSynchronizationDelete(TfLiteSynchronization* sync);
TFL_CAPI_EXPORT void TfLiteSynchronizationSetPtr(TfLiteSynchronization* sync, void* ptr);
TFL_CAPI_EXPORT void* TfLiteSynchronizationGetPtr(const TfLiteSynchronization* sync);

/* --- attributes of buffers and fences ----------------------------------------------------------------------------- */

TFL_CAPI_EXPORT TfLiteAttributeMap* TfLiteAttributeMapCreate(TfLiteAttrMapType type);
TFL_CAPI_EXPORT void TfLiteAttributeMapDelete(TfLiteAttributeMap* attrs);
TFL_CAPI_EXPORT bool TfLiteAttributeMapIsBufferAttributeMap(const TfLiteAttributeMap* attrs);
TFL_CAPI_EXPORT bool TfLiteAttributeMapIsSyncAttributeMap(const TfLiteAttributeMap* attrs);
TFL_CAPI_EXPORT void TfLiteAttributeMapCopy(const TfLiteAttributeMap* src, TfLiteAttributeMap* dst);
TFL_CAPI_EXPORT bool TfLiteAttributeMapGetSizeTBufferAttr(
    const TfLiteAttributeMap* attrs, TfLiteBufferAttrKey key, size_t* val);
TFL_CAPI_EXPORT bool TfLiteAttributeMapSetSizeTBufferAttr(
    TfLiteAttributeMap* attrs, TfLiteBufferAttrKey key, size_t val);
TFL_CAPI_EXPORT bool TfLiteAttributeMapGetStringBufferAttr(
    const TfLiteAttributeMap* attrs, TfLiteBufferAttrKey key, const char** val);
TFL_CAPI_EXPORT bool TfLiteAttributeMapSetStringBufferAttr(
    TfLiteAttributeMap* attrs, TfLiteBufferAttrKey key, const char* val);
TFL_CAPI_EXPORT bool TfLiteAttributeMapGetBoolBufferAttr(
    const TfLiteAttributeMap* attrs, TfLiteBufferAttrKey key, bool* val);
TFL_CAPI_EXPORT bool TfLiteAttributeMapSetBoolBufferAttr(TfLiteAttributeMap* attrs, TfLiteBufferAttrKey key, bool val);
TFL_CAPI_EXPORT bool TfLiteAttributeMapGetStringSyncAttr(
    const TfLiteAttributeMap* attrs, TfLiteSynchronizationAttrKey key, const char** val);
TFL_CAPI_EXPORT bool TfLiteAttributeMapSetStringSyncAttr(
    TfLiteAttributeMap* attrs, TfLiteSynchronizationAttrKey key, const char* val);
TFL_CAPI_EXPORT bool TfLiteAttributeMapGetIntAttr(const TfLiteAttributeMap* attrs, uint32_t key, int* val);
TFL_CAPI_EXPORT void TfLiteAttributeMapSetIntAttr(TfLiteAttributeMap* attrs, uint32_t key, int val);
TFL_CAPI_EXPORT bool TfLiteAttributeMapGetCustomIntAttr(const TfLiteAttributeMap* attrs, const char* key, int* val);
TFL_CAPI_EXPORT void TfLiteAttributeMapSetCustomIntAttr(TfLiteAttributeMap* attrs, const char* key, int val);
TFL_CAPI_EXPORT bool TfLiteAttributeMapGetSizeTAttr(const TfLiteAttributeMap* attrs, uint32_t key, size_t* val);
TFL_CAPI_EXPORT void TfLiteAttributeMapSetSizeTAttr(TfLiteAttributeMap* attrs, uint32_t key, size_t val);
TFL_CAPI_EXPORT bool TfLiteAttributeMapGetCustomSizeTAttr(
    const TfLiteAttributeMap* attrs, const char* key, size_t* val);
TFL_CAPI_EXPORT void TfLiteAttributeMapSetCustomSizeTAttr(TfLiteAttributeMap* attrs, const char* key, size_t val);
TFL_CAPI_EXPORT bool TfLiteAttributeMapGetStringAttr(const TfLiteAttributeMap* attrs, uint32_t key, const char** val);
TFL_CAPI_EXPORT void TfLiteAttributeMapSetStringAttr(TfLiteAttributeMap* attrs, uint32_t key, const char* val);
TFL_CAPI_EXPORT bool TfLiteAttributeMapGetCustomStringAttr(
    const TfLiteAttributeMap* attrs, const char* key, const char** val);
TFL_CAPI_EXPORT void TfLiteAttributeMapSetCustomStringAttr(TfLiteAttributeMap* attrs, const char* key, const char* val);
TFL_CAPI_EXPORT bool TfLiteAttributeMapGetBoolAttr(const TfLiteAttributeMap* attrs, uint32_t key, bool* val);
TFL_CAPI_EXPORT void TfLiteAttributeMapSetBoolAttr(TfLiteAttributeMap* attrs, uint32_t key, bool val);
TFL_CAPI_EXPORT bool TfLiteAttributeMapGetCustomBoolAttr(const TfLiteAttributeMap* attrs, const char* key, bool* val);
TFL_CAPI_EXPORT void TfLiteAttributeMapSetCustomBoolAttr(TfLiteAttributeMap* attrs, const char* key, bool val);

#ifdef __cplusplus
}
#endif

#endif
