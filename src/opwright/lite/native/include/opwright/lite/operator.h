/* Making operators for the opaque interface: TfLiteOperator, under today's names and those it had until 2024.

   The function that makes one took two, three and four arguments in turn; all three are accepted here:
       TfLiteOperatorCreate(kTfLiteBuiltinCustom, "Atan", 1)              until TensorFlow 2.17
       TfLiteOperatorCreate(kTfLiteBuiltinCustom, "Atan", 1, user_data)   since
       TfLiteRegistrationExternalCreate("Atan", 1)                        in the beginning                              */
#ifndef OPWRIGHT_LITE_OPERATOR_H_
#define OPWRIGHT_LITE_OPERATOR_H_

#include "builtin_ops.h"
#include "types.h"

#ifdef __cplusplus
#define OW_DEFAULT_NULL = nullptr
extern "C" {
#else
#define OW_DEFAULT_NULL
#endif

/* An operator without callbacks. custom_name is kept, not copied. user_data goes to the callbacks that are set by
   the ...WithData functions, in front of their arguments; it stays the caller's and outlives every one of them. */
TFL_CAPI_EXPORT TfLiteOperator* TfLiteOperatorCreate(TfLiteBuiltinOperator builtin_code, const char* custom_name,
                                                     int version, void* user_data OW_DEFAULT_NULL);
TFL_CAPI_EXPORT TfLiteOperator* TfLiteOperatorCreateWithData(TfLiteBuiltinOperator builtin_code,
                                                             const char* custom_name, int version, void* user_data);
TFL_CAPI_EXPORT void TfLiteOperatorDelete(TfLiteOperator* registration);

TFL_CAPI_EXPORT TfLiteBuiltinOperator TfLiteOperatorGetBuiltInCode(const TfLiteOperator* registration);
TFL_CAPI_EXPORT const char* TfLiteOperatorGetCustomName(const TfLiteOperator* registration);
TFL_CAPI_EXPORT int TfLiteOperatorGetVersion(const TfLiteOperator* registration);
TFL_CAPI_EXPORT void* TfLiteOperatorGetUserData(const TfLiteOperator* registration);

/* init: once a node, with the bytes of its options; what it gives is the node's state. */
TFL_CAPI_EXPORT void TfLiteOperatorSetInit(TfLiteOperator* registration,
                                           void* (*init)(TfLiteOpaqueContext* context, const char* buffer,
                                                         size_t length));
/* free: once a node whose init gave a state other than null. */
TFL_CAPI_EXPORT void TfLiteOperatorSetFree(TfLiteOperator* registration,
                                           void (*free)(TfLiteOpaqueContext* context, void* data));
/* prepare: when tensors are allocated, and again after a resize. It gives outputs their shapes. */
TFL_CAPI_EXPORT void TfLiteOperatorSetPrepare(TfLiteOperator* registration,
                                              TfLiteStatus (*prepare)(TfLiteOpaqueContext* context,
                                                                      TfLiteOpaqueNode* node));
/* invoke: each run. */
TFL_CAPI_EXPORT void TfLiteOperatorSetInvoke(TfLiteOperator* registration,
                                             TfLiteStatus (*invoke)(TfLiteOpaqueContext* context,
                                                                    TfLiteOpaqueNode* node));
/* async_kernel: for nodes of delegates; nobody asks an operator that runs on the CPU. */
TFL_CAPI_EXPORT void TfLiteOperatorSetAsyncKernel(TfLiteOperator* registration,
                                                  TfLiteAsyncKernel* (*async_kernel)(TfLiteOpaqueContext* context,
                                                                                     TfLiteOpaqueNode* node));
/* TfLiteInPlaceOp bits. */
TFL_CAPI_EXPORT void TfLiteOperatorSetInplaceOperator(TfLiteOperator* registration, uint64_t inplace_operator);

/* The same with the operator's user_data in front. Where both are set, these are called. */
TFL_CAPI_EXPORT TfLiteStatus TfLiteOperatorSetInitWithData(TfLiteOperator* registration,
                                                           void* (*init)(void* user_data, TfLiteOpaqueContext* context,
                                                                         const char* buffer, size_t length));
TFL_CAPI_EXPORT TfLiteStatus TfLiteOperatorSetFreeWithData(TfLiteOperator* registration,
                                                           void (*free)(void* user_data, TfLiteOpaqueContext* context,
                                                                        void* data));
TFL_CAPI_EXPORT TfLiteStatus TfLiteOperatorSetPrepareWithData(
    TfLiteOperator* registration,
    TfLiteStatus (*prepare)(void* user_data, TfLiteOpaqueContext* context, TfLiteOpaqueNode* node));
TFL_CAPI_EXPORT TfLiteStatus TfLiteOperatorSetInvokeWithData(
    TfLiteOperator* registration,
    TfLiteStatus (*invoke)(void* user_data, TfLiteOpaqueContext* context, TfLiteOpaqueNode* node));
TFL_CAPI_EXPORT TfLiteStatus TfLiteOperatorSetAsyncKernelWithData(
    TfLiteOperator* registration,
    TfLiteAsyncKernel* (*async_kernel)(void* user_data, TfLiteOpaqueContext* context, TfLiteOpaqueNode* node));

#ifdef __cplusplus
}

inline TfLiteOperator* TfLiteRegistrationExternalCreate(TfLiteBuiltinOperator builtin_code, const char* custom_name,
                                                        int version) {
  return TfLiteOperatorCreate(builtin_code, custom_name, version, nullptr);
}
inline TfLiteOperator* TfLiteRegistrationExternalCreate(const char* custom_name, int version) {
  return TfLiteOperatorCreate(kTfLiteBuiltinCustom, custom_name, version, nullptr);
}
#else
#define OW_PICK_4(_1, _2, _3, _4, name, ...) name
#define OW_CREATE_2(custom_name, version) (TfLiteOperatorCreate)(kTfLiteBuiltinCustom, custom_name, version, NULL)
#define OW_CREATE_3(builtin_code, custom_name, version) (TfLiteOperatorCreate)(builtin_code, custom_name, version, NULL)
#define OW_CREATE_4(builtin_code, custom_name, version, user_data) \
  (TfLiteOperatorCreate)(builtin_code, custom_name, version, user_data)
#define TfLiteOperatorCreate(...) OW_PICK_4(__VA_ARGS__, OW_CREATE_4, OW_CREATE_3, OW_CREATE_2, 0, 0)(__VA_ARGS__)
#define TfLiteRegistrationExternalCreate TfLiteOperatorCreate
#endif

#define TfLiteRegistrationExternalDelete TfLiteOperatorDelete
#define TfLiteRegistrationExternalGetBuiltInCode TfLiteOperatorGetBuiltInCode
#define TfLiteRegistrationExternalGetCustomName TfLiteOperatorGetCustomName
#define TfLiteRegistrationExternalGetVersion TfLiteOperatorGetVersion
#define TfLiteRegistrationExternalSetInit TfLiteOperatorSetInit
#define TfLiteRegistrationExternalSetFree TfLiteOperatorSetFree
#define TfLiteRegistrationExternalSetPrepare TfLiteOperatorSetPrepare
#define TfLiteRegistrationExternalSetInvoke TfLiteOperatorSetInvoke
#define TfLiteRegistrationExternalSetAsyncKernel TfLiteOperatorSetAsyncKernel
#define TfLiteRegistrationExternalSetInplaceOperator TfLiteOperatorSetInplaceOperator

#endif
