/* Operator records: making them, their callbacks, calls from the interpreter. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "provider.h"

#undef TfLiteOperatorCreate
#undef TfLiteRegistrationExternalCreate
#undef TfLiteRegistrationExternalDelete
#undef TfLiteRegistrationExternalGetBuiltInCode
#undef TfLiteRegistrationExternalGetCustomName
#undef TfLiteRegistrationExternalGetVersion
#undef TfLiteRegistrationExternalSetInit
#undef TfLiteRegistrationExternalSetFree
#undef TfLiteRegistrationExternalSetPrepare
#undef TfLiteRegistrationExternalSetInvoke
#undef TfLiteRegistrationExternalSetAsyncKernel
#undef TfLiteRegistrationExternalSetInplaceOperator

typedef void* (*Init)(TfLiteOpaqueContext*, const char*, size_t);
typedef void (*Free)(TfLiteOpaqueContext*, void*);
typedef TfLiteStatus (*Step)(TfLiteOpaqueContext*, TfLiteOpaqueNode*);
typedef TfLiteAsyncKernel* (*Async)(TfLiteOpaqueContext*, TfLiteOpaqueNode*);
typedef void* (*InitWithData)(void*, TfLiteOpaqueContext*, const char*, size_t);
typedef void (*FreeWithData)(void*, TfLiteOpaqueContext*, void*);
typedef TfLiteStatus (*StepWithData)(void*, TfLiteOpaqueContext*, TfLiteOpaqueNode*);
typedef TfLiteAsyncKernel* (*AsyncWithData)(void*, TfLiteOpaqueContext*, TfLiteOpaqueNode*);

/* The first 120 bytes are laid out as in the official run time, which takes such a record too. */
struct TfLiteOperator {
  const char* custom_name;
  int version;
  Init init;
  Free free;
  Step prepare;
  Step invoke;
  Async async_kernel;
  int32_t builtin_code;
  int32_t node_index; /* -1: the callbacks are its own */
  uint64_t inplace_operator;
  void* user_data;
  InitWithData init_with_data;
  FreeWithData free_with_data;
  StepWithData prepare_with_data;
  StepWithData invoke_with_data;
  AsyncWithData async_kernel_with_data;
  struct TfLiteOperator *before, *after; /* in the list of those that live */
};

static struct TfLiteOperator* living;
static atomic_flag lock = ATOMIC_FLAG_INIT;

static void enter(void) {
  while (atomic_flag_test_and_set_explicit(&lock, memory_order_acquire)) {
  }
}

static void leave(void) { atomic_flag_clear_explicit(&lock, memory_order_release); }

/* --- making and ending --------------------------------------------------------------------------------------------- */

TfLiteOperator* TfLiteOperatorCreate(TfLiteBuiltinOperator builtin_code, const char* custom_name, int version,
                                     void* user_data) {
  TfLiteOperator* op = ow_zeroed(sizeof *op);
  if (op == NULL) return NULL;
  op->custom_name = custom_name;
  op->version = version;
  op->builtin_code = (int32_t)builtin_code;
  op->node_index = -1;
  op->user_data = user_data;
  enter();
  op->after = living;
  if (living != NULL) living->before = op;
  living = op;
  leave();
  return op;
}

TfLiteOperator* TfLiteOperatorCreateWithData(TfLiteBuiltinOperator builtin_code, const char* custom_name, int version,
                                             void* user_data) {
  return TfLiteOperatorCreate(builtin_code, custom_name, version, user_data);
}

int ow_is_operator(const void* pointer) {
  enter();
  const struct TfLiteOperator* op = living;
  while (op != NULL && op != pointer) op = op->after;
  leave();
  return op != NULL;
}

void TfLiteOperatorDelete(TfLiteOperator* op) {
  if (op == NULL) return;
  OW_REQUIRE(ow_is_operator(op), );
  enter();
  if (op->before != NULL) op->before->after = op->after;
  if (op->after != NULL) op->after->before = op->before;
  if (living == op) living = op->after;
  leave();
  ow_release(op);
}

/* --- reading and setting ------------------------------------------------------------------------------------------- */

TfLiteBuiltinOperator TfLiteOperatorGetBuiltInCode(const TfLiteOperator* op) {
  OW_REQUIRE(op != NULL, kTfLiteBuiltinCustom);
  return (TfLiteBuiltinOperator)op->builtin_code;
}

const char* TfLiteOperatorGetCustomName(const TfLiteOperator* op) {
  OW_REQUIRE(op != NULL, NULL);
  return op->custom_name;
}

int TfLiteOperatorGetVersion(const TfLiteOperator* op) { return op == NULL ? -1 : op->version; }

void* TfLiteOperatorGetUserData(const TfLiteOperator* op) { return op == NULL ? NULL : op->user_data; }

#define SETTER(Name, Type, field)                          \
  void TfLiteOperatorSet##Name(TfLiteOperator* op, Type f) { \
    OW_REQUIRE(op != NULL, );                              \
    op->field = f;                                         \
  }
#define SETTER_WITH_DATA(Name, Type, field)                                \
  TfLiteStatus TfLiteOperatorSet##Name##WithData(TfLiteOperator* op, Type f) { \
    OW_REQUIRE(op != NULL, kTfLiteError);                                  \
    op->field = f;                                                         \
    return kTfLiteOk;                                                      \
  }

SETTER(Init, Init, init)
SETTER(Free, Free, free)
SETTER(Prepare, Step, prepare)
SETTER(Invoke, Step, invoke)
SETTER(AsyncKernel, Async, async_kernel)
SETTER(InplaceOperator, uint64_t, inplace_operator)
SETTER_WITH_DATA(Init, InitWithData, init_with_data)
SETTER_WITH_DATA(Free, FreeWithData, free_with_data)
SETTER_WITH_DATA(Prepare, StepWithData, prepare_with_data)
SETTER_WITH_DATA(Invoke, StepWithData, invoke_with_data)
SETTER_WITH_DATA(AsyncKernel, AsyncWithData, async_kernel_with_data)

/* --- the names until 2024, as symbols of their own ----------------------------------------------------------------- */

/* Two functions had this name: (name, version), then (code, name, version). No pointer is as small as a code. */
OW_EXPORT TfLiteOperator* TfLiteRegistrationExternalCreate(uintptr_t first, uintptr_t second, int third) {
  if (first < 65536) return TfLiteOperatorCreate((TfLiteBuiltinOperator)first, (const char*)second, third, NULL);
  return TfLiteOperatorCreate(kTfLiteBuiltinCustom, (const char*)first, (int)second, NULL);
}

OW_EXPORT void TfLiteRegistrationExternalDelete(TfLiteOperator* op) { TfLiteOperatorDelete(op); }
OW_EXPORT TfLiteBuiltinOperator TfLiteRegistrationExternalGetBuiltInCode(const TfLiteOperator* op) {
  return TfLiteOperatorGetBuiltInCode(op);
}
OW_EXPORT const char* TfLiteRegistrationExternalGetCustomName(const TfLiteOperator* op) {
  return TfLiteOperatorGetCustomName(op);
}
OW_EXPORT int TfLiteRegistrationExternalGetVersion(const TfLiteOperator* op) { return TfLiteOperatorGetVersion(op); }

#define OLD_SETTER(Name, Type) \
  OW_EXPORT void TfLiteRegistrationExternalSet##Name(TfLiteOperator* op, Type f) { TfLiteOperatorSet##Name(op, f); }
OLD_SETTER(Init, Init)
OLD_SETTER(Free, Free)
OLD_SETTER(Prepare, Step)
OLD_SETTER(Invoke, Step)
OLD_SETTER(AsyncKernel, Async)
OLD_SETTER(InplaceOperator, uint64_t)

/* --- calls from the interpreter ------------------------------------------------------------------------------------ */

void ow_operator_registration(const TfLiteOperator* op, TfLiteRegistration* r) {
  memset(r, 0, sizeof *r);
  r->registration_external = (TfLiteOperator*)op;
  r->builtin_code = op->builtin_code;
  r->custom_name = op->custom_name;
  r->version = op->version;
  r->inplace_operator = op->inplace_operator;
}

/* What is around every callback: which host a misuse on this thread belongs to, and how it is counted. */
static OwHost* begin(TfLiteContext* context, int step, TfLiteNode* node) {
  OwHost *outer = ow_here, *host = context->impl_;
  host->step = step;
  host->node = node;
  host->report_used = 0; /* what a callback reports that succeeds is not kept */
  host->misuse = host->thrown = 0;
  ow_here = host;
  return outer;
}

static int end(TfLiteContext* context, OwHost* outer, TfLiteStatus status) {
  OwHost* host = context->impl_;
  host->step = OW_IDLE;
  ow_here = outer;
  return status == kTfLiteOk && host->misuse != 0 ? kTfLiteError : (int)status;
}

/* The functions of a record, as addresses: a library may be in C++, and throw. */
#define CALL(function, a, b, c, d) ow_call(address_of(&(function)), (void*)(a), (void*)(b), (void*)(c), (void*)(d))
#define STATUS(function, a, b, c) (TfLiteStatus)(intptr_t)CALL(function, a, b, c, NULL)

static void* address_of(const void* function) {
  void* address;
  memcpy(&address, function, sizeof address);
  return address;
}

void* ow_init(const TfLiteRegistration* r, TfLiteContext* context, const char* buffer, size_t length) {
  const TfLiteOperator* op = r->registration_external;
  TfLiteOpaqueContext* opaque = (TfLiteOpaqueContext*)context;
  OwHost* outer = begin(context, OW_INIT, NULL);
  void* state = NULL;
  if (op != NULL && op->init_with_data != NULL) {
    state = CALL(op->init_with_data, op->user_data, opaque, buffer, length);
  } else if (op != NULL && op->init != NULL) {
    state = CALL(op->init, opaque, buffer, length, NULL);
  } else if (r->init != NULL) {
    state = CALL(r->init, context, buffer, length, NULL);
  }
  end(context, outer, kTfLiteOk);
  return state;
}

void ow_free(const TfLiteRegistration* r, TfLiteContext* context, void* state) {
  const TfLiteOperator* op = r->registration_external;
  TfLiteOpaqueContext* opaque = (TfLiteOpaqueContext*)context;
  if (state == NULL) return;
  OwHost* outer = begin(context, OW_FREE, NULL);
  if (op != NULL && op->free_with_data != NULL) {
    CALL(op->free_with_data, op->user_data, opaque, state, NULL);
  } else if (op != NULL && op->free != NULL) {
    CALL(op->free, opaque, state, NULL, NULL);
  } else if (r->free != NULL) {
    CALL(r->free, context, state, NULL, NULL);
  }
  end(context, outer, kTfLiteOk);
}

int ow_prepare(const TfLiteRegistration* r, TfLiteContext* context, TfLiteNode* node) {
  const TfLiteOperator* op = r->registration_external;
  TfLiteOpaqueContext* opaque = (TfLiteOpaqueContext*)context;
  OwHost* outer = begin(context, OW_PREPARE, node);
  TfLiteStatus status = kTfLiteOk;
  if (op != NULL && op->prepare_with_data != NULL) {
    status = STATUS(op->prepare_with_data, op->user_data, opaque, node);
  } else if (op != NULL && op->prepare != NULL) {
    status = STATUS(op->prepare, opaque, node, NULL);
  } else if (r->prepare != NULL) {
    status = STATUS(r->prepare, context, node, NULL);
  }
  return end(context, outer, status);
}

int ow_invoke(const TfLiteRegistration* r, TfLiteContext* context, TfLiteNode* node) {
  const TfLiteOperator* op = r->registration_external;
  TfLiteOpaqueContext* opaque = (TfLiteOpaqueContext*)context;
  OwHost* outer = begin(context, OW_INVOKE, node);
  TfLiteStatus status = kTfLiteError;
  if (op != NULL && op->invoke_with_data != NULL) {
    status = STATUS(op->invoke_with_data, op->user_data, opaque, node);
  } else if (op != NULL && op->invoke != NULL) {
    status = STATUS(op->invoke, opaque, node, NULL);
  } else if (r->invoke != NULL) {
    status = STATUS(r->invoke, context, node, NULL);
  } else {
    ow_report(ow_here, "the operator has no invoke");
  }
  return end(context, outer, status);
}

/* What an operator has changed about a tensor that was planned; null for nothing. */
static const char* changed(const TfLiteTensor* t, const OwPlace* place) {
  if (t->data.data != t->allocation) return "the address of its elements";
  if ((int32_t)t->type != place->type) return "its type";
  if (t->bytes != place->bytes) return "its bytes";
  return TfLiteIntArrayEqualsArray(t->dims, place->rank, place->sizes) ? NULL : "its sizes";
}

int ow_run(const OwCall* call) {
  int status = ow_invoke(call->registration, call->context, call->node);
  for (size_t i = 0; i < call->places_size; ++i) {
    const OwPlace* place = call->places + i;
    const TfLiteTensor* t = call->context->tensors + place->index;
    const char* what = changed(t, place);
    if (what == NULL) continue;
    OwHost* host = call->context->impl_;
    host->misuse++;
    ow_report(host, "invoke changed what tensor %d '%s' is: %s", place->index, t->name == NULL ? "" : t->name, what);
    status = status == kTfLiteOk ? kTfLiteError : status;
  }
  return status;
}

int ow_run_all(OwCalls* calls) {
  for (calls->done = 0; calls->done < calls->size; ++calls->done) {
    const int status = ow_run(calls->calls[calls->done]);
    if (status != kTfLiteOk) return status;
  }
  return kTfLiteOk;
}

int ow_has_invoke(const TfLiteRegistration* r) {
  const TfLiteOperator* op = r->registration_external;
  return (op != NULL && (op->invoke_with_data != NULL || op->invoke != NULL)) || r->invoke != NULL;
}
