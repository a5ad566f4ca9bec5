/* Contexts: reports, shapes, new tensors, and what is refused. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "provider.h"

#define HOST(context) ((OwHost*)(context)->impl_)

_Thread_local OwHost* ow_here;

/* --- reports ------------------------------------------------------------------------------------------------------- */

void ow_report_va(OwHost* host, const char* format, va_list arguments) {
  static atomic_flag writing = ATOMIC_FLAG_INIT; /* an operator may report from threads of its own */
  if (format == NULL) format = "(an empty report)";
  if (host == NULL || host->report == NULL || host->report_size < 8) {
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    return;
  }
  while (atomic_flag_test_and_set_explicit(&writing, memory_order_acquire)) {
  }
  size_t used = host->report_used;
  if (used > 0 && used + 2 < host->report_size) host->report[used++] = '\n';
  size_t room = host->report_size - used;
  int wanted = vsnprintf(host->report + used, room, format, arguments);
  if (wanted < 0) {
    host->report[used] = 0;
  } else if ((size_t)wanted < room) {
    used += (size_t)wanted;
  } else { /* cut: say so */
    used = host->report_size - 1;
    memcpy(host->report + used - 3, "...", 4);
  }
  host->report_used = used;
  atomic_flag_clear_explicit(&writing, memory_order_release);
}

void ow_report(OwHost* host, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  ow_report_va(host, format, arguments);
  va_end(arguments);
}

void ow_misuse(const char* function, const char* what) {
  if (ow_here != NULL) ow_here->misuse++;
  ow_report(ow_here, "%s: %s", function, what);
}

void ow_misused_index(const char* function, long long index, size_t count) {
  if (ow_here != NULL) ow_here->misuse++;
  ow_report(ow_here, "%s: index %lld, of %zu", function, index, count);
}

static void report_error(TfLiteContext* context, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  ow_report_va(context == NULL ? ow_here : HOST(context), format, arguments);
  va_end(arguments);
}

/* --- shapes and new tensors ---------------------------------------------------------------------------------------- */

static void set_dims(TfLiteTensor* tensor, TfLiteIntArray* shape) {
  if (tensor->dims != shape) TfLiteIntArrayFree(tensor->dims);
  tensor->dims = shape;
}

TfLiteStatus ow_resize_tensor(TfLiteContext* context, TfLiteTensor* tensor, TfLiteIntArray* shape) {
  OwHost* host = HOST(context);
  const char* name = tensor->name == NULL ? "" : tensor->name;
  TfLiteAllocationType kind = tensor->allocation_type;
  const char* refusal = NULL;
  size_t bytes = 0;
  bool sized = tensor->type != kTfLiteString && tensor->type != kTfLiteResource && tensor->type != kTfLiteVariant;
  bool same = tensor->dims != NULL && tensor->dims != shape && TfLiteIntArrayEqual(tensor->dims, shape);

  if (same && tensor->data.data != NULL) { /* callers go on reading the array they gave */
    set_dims(tensor, shape);
    return kTfLiteOk;
  }
  if (kind == kTfLiteMmapRo) {
    refusal = "Attempting to resize a fixed-size tensor.";
  } else if (sized && ow_bits(tensor->type) == 0) {
    refusal = "the tensor has no type yet: set one before its shape";
  } else if (sized && !ow_bytes_of(tensor->type, shape, &bytes)) {
    refusal = "a shape has sizes of 0 or more, and fits in memory";
  } else if (sized && kind != kTfLiteDynamic && kind != kTfLitePersistentRo && host->step == OW_INVOKE && !same) {
    refusal = "invoke cannot change the shape of memory that was planned: make the tensor dynamic in prepare";
  }
  if (refusal != NULL) {
    ow_report(host, "ResizeTensor of '%s': %s", name, refusal);
    if (tensor->dims != shape) TfLiteIntArrayFree(shape);
    return kTfLiteError;
  }
  set_dims(tensor, shape);
  host->resized++;
  if (!sized) return kTfLiteOk;
  if (kind == kTfLiteDynamic || kind == kTfLitePersistentRo) {
    if (TfLiteTensorResizeMaybeCopy(bytes, tensor, false) != kTfLiteOk) {
      ow_report(host, "ResizeTensor of '%s': no memory for %zu bytes", name, bytes);
      return kTfLiteError;
    }
    return kTfLiteOk;
  }
  tensor->bytes = bytes;
  if (kind != kTfLiteCustom) tensor->data.data = NULL;
  return kTfLiteOk;
}

TfLiteStatus ow_add_tensors(TfLiteContext* context, int count, int* first) {
  OwHost* host = HOST(context);
  if (count < 0 || (size_t)count > host->tensors_capacity - context->tensors_size ||
      host->tensors_capacity < context->tensors_size) {
    ow_report(host, "AddTensors: %d more tensors than the %zu there are: one call may add 16", count,
              context->tensors_size);
    return kTfLiteError;
  }
  if (first != NULL) *first = (int)context->tensors_size;
  if (count == 0) return kTfLiteOk;
  TfLiteTensor* added = context->tensors + context->tensors_size;
  memset(added, 0, (size_t)count * sizeof *added);
  for (int i = 0; i < count; ++i) added[i].buffer_handle = kTfLiteNullBufferHandle;
  context->tensors_size += (size_t)count;
  return kTfLiteOk;
}

static TfLiteStatus resize_tensor(TfLiteContext* context, TfLiteTensor* tensor, TfLiteIntArray* shape) {
  if (context == NULL || tensor == NULL || shape == NULL) {
    ow_misuse("ResizeTensor", context == NULL ? "the context is null"
                              : tensor == NULL ? "the tensor is null" : "the shape is null");
    if (tensor == NULL || tensor->dims != shape) TfLiteIntArrayFree(shape);
    return kTfLiteError;
  }
  OwHost* host = HOST(context);
  return (host->resize != NULL ? host->resize : ow_resize_tensor)(context, tensor, shape);
}

static TfLiteStatus add_tensors(TfLiteContext* context, int count, int* first) {
  OW_REQUIRE(context != NULL, kTfLiteError);
  OwHost* host = HOST(context);
  return (host->add_tensors != NULL ? host->add_tensors : ow_add_tensors)(context, count, first);
}

/* --- the rest of a context ----------------------------------------------------------------------------------------- */

static TfLiteStatus forbidden(TfLiteContext* context) {
  ow_report(context == NULL ? ow_here : HOST(context), "The function is forbidden if not calling in delegate.");
  return kTfLiteError;
}

static TfLiteStatus execution_plan(TfLiteContext* context, TfLiteIntArray** plan) {
  if (plan != NULL) *plan = NULL;
  return forbidden(context);
}

static TfLiteStatus node_and_registration(TfLiteContext* context, int index, TfLiteNode** node,
                                          TfLiteRegistration** registration) {
  (void)index;
  if (node != NULL) *node = NULL;
  if (registration != NULL) *registration = NULL;
  return forbidden(context);
}

static TfLiteStatus replace_subsets(TfLiteContext* context, TfLiteRegistration registration,
                                    const TfLiteIntArray* nodes, TfLiteDelegate* delegate) {
  (void)registration, (void)nodes, (void)delegate;
  return forbidden(context);
}

static TfLiteStatus preview_partitioning(TfLiteContext* context, const TfLiteIntArray* nodes,
                                         TfLiteDelegateParams** partitions, int* count) {
  (void)nodes;
  if (partitions != NULL) *partitions = NULL;
  if (count != NULL) *count = 0;
  return forbidden(context);
}

static TfLiteStatus acquire_subgraph(TfLiteContext* context, int index, TfLiteContext** acquired) {
  (void)index;
  if (acquired != NULL) *acquired = NULL;
  return forbidden(context);
}

static TfLiteStatus release_subgraph(TfLiteContext* context, int index) {
  (void)index;
  return forbidden(context);
}

static TfLiteExternalContext* external_context(TfLiteContext* context, TfLiteExternalContextType type) {
  OW_REQUIRE(context != NULL && (unsigned)type < kTfLiteMaxExternalContexts, NULL);
  TfLiteExternalContext* external = HOST(context)->external_contexts[type];
  if (external == NULL && type == kTfLiteCpuBackendContext) {
    return ow_backend(context, __builtin_return_address(0));
  }
  return external;
}

static void set_external_context(TfLiteContext* context, TfLiteExternalContextType type,
                                 TfLiteExternalContext* external) {
  OW_REQUIRE(context != NULL && (unsigned)type < kTfLiteMaxExternalContexts, );
  HOST(context)->external_contexts[type] = external;
}

static TfLiteStatus model_metadata(const TfLiteContext* context, const char* name, const char** ptr, size_t* bytes) {
  OW_REQUIRE(context != NULL && name != NULL && ptr != NULL && bytes != NULL, kTfLiteError);
  *ptr = NULL;
  *bytes = 0;
  return HOST(context)->get_metadata == NULL ? kTfLiteError : HOST(context)->get_metadata(context, name, ptr, bytes);
}

void ow_context_init(TfLiteContext* context, OwHost* host) {
  context->impl_ = host;
  context->GetExecutionPlan = execution_plan;
  context->ResizeTensor = resize_tensor;
  context->ReportError = report_error;
  context->AddTensors = add_tensors;
  context->GetNodeAndRegistration = node_and_registration;
  context->ReplaceNodeSubsetsWithDelegateKernels = replace_subsets;
  context->GetExternalContext = external_context;
  context->SetExternalContext = set_external_context;
  context->PreviewDelegatePartitioning = preview_partitioning;
  context->GetModelMetadata = model_metadata;
  context->AcquireSubgraphContext = acquire_subgraph;
  context->ReleaseSubgraphContext = release_subgraph;
}
