/* The CpuBackendContext that kernels of the official run time share their thread pool by.

   A library that uses one has its class and its functions linked in, and asks the run time for the place to keep it: a
   tflite::ExternalCpuBackendContext, which is a TfLiteExternalContext and the address of a
   tflite::TfLiteInternalBackendContext, null at first. The library makes the object, and its virtual functions say how it
   ends. Each library gets a place of its own, as its class may be of another version than the next one's. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr */
#endif
#include <stddef.h>
#include <string.h>

#include "provider.h"

#if defined(_WIN32)
static const void* library_of(const void* address) { return (void)address, NULL; }
#else
#include <dlfcn.h>
static const void* library_of(const void* address) {
  Dl_info info;
  return dladdr(address, &info) == 0 ? NULL : info.dli_fbase;
}
#endif

/* As C++ lays the object out: its functions first, of which two are destructors. */
typedef struct Internal {
  const struct {
    void (*destroy)(struct Internal* self);
    void (*destroy_and_free)(struct Internal* self);
    void (*set_max_num_threads)(struct Internal* self, int count);
    void (*clear_caches)(struct Internal* self);
  } * functions;
} Internal;

typedef struct External {
  TfLiteExternalContext base;
  Internal* internal;
} External;
_Static_assert(sizeof(External) == 24, "libraries write behind the base");

typedef struct OwBackend {
  External external; /* first: its address is what the library gets */
  const void* library;
  const void* caller; /* the place in the library that asked last, which is quicker to compare than to look up */
  struct OwBackend* next;
} OwBackend;

static TfLiteStatus refresh(TfLiteContext* context) {
  OwHost* host = context->impl_;
  for (OwBackend* b = host->backends; b != NULL; b = b->next) {
    Internal* internal = b->external.internal;
    if (internal != NULL) internal->functions->set_max_num_threads(internal, context->recommended_num_threads);
  }
  return kTfLiteOk;
}

TfLiteExternalContext* ow_backend(TfLiteContext* context, const void* caller) {
  OwHost* host = context->impl_;
  for (OwBackend* b = host->backends; b != NULL; b = b->next) {
    if (b->caller == caller) return &b->external.base;
  }
  const void* library = library_of(caller);
  OwBackend* backend = host->backends;
  while (backend != NULL && backend->library != library) backend = backend->next;
  if (backend == NULL) {
    backend = ow_zeroed(sizeof *backend);
    OW_REQUIRE(backend != NULL, NULL);
    backend->external.base.type = kTfLiteCpuBackendContext;
    backend->external.base.Refresh = refresh;
    backend->library = library;
    backend->next = host->backends;
    host->backends = backend;
  }
  backend->caller = caller;
  return &backend->external.base;
}

void ow_context_end(TfLiteContext* context) {
  OwHost* host = context->impl_;
  while (host->backends != NULL) {
    OwBackend* backend = host->backends;
    Internal* internal = backend->external.internal;
    host->backends = backend->next;
    if (internal != NULL) internal->functions->destroy_and_free(internal);
    ow_release(backend);
  }
}
