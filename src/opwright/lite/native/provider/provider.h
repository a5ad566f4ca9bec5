/* The run time as operators in C and C++ see it, and as the interpreter's Python sees it.

   A library of operators has names that somebody must define: TfLite..., and those of C++ helpers. The files beside this
   one define them all, over the structs of opwright/lite/common.h: an opaque pointer is the address of the struct. They
   are compiled once into a shared library whose names are global, before a user's library is loaded.

   Lives here: the functions that the interpreter calls, and OwHost, what it tells about a subgraph.

     operators.c       operator records, the order of their callbacks, calls from the interpreter
     context.c         contexts: shapes, new tensors, reports, what is refused
     opaque_context.c  the opaque interface to contexts and nodes
     arrays.c          memory, element types, arrays
     tensors.c         tensors of the classic interface
     opaque.c          tensors and their builders, of the opaque interface
     kernel_util.c     the C++ helpers under their mangled names; quantization.c those that do arithmetic
     entries.c         functions of a library that give registrations, or add them to a resolver
     guard.c           calls that C++ exceptions do not leave
     strings.c         tflite::DynamicBuffer, of libraries of the official headers
     backend.c         the CpuBackendContext of libraries that have one linked in
     async.c           asynchronous kernels, attribute maps
     programs.c        functions by which programs run models: each says that this cannot be done here */
#ifndef OPWRIGHT_NATIVE_PROVIDER_H_
#define OPWRIGHT_NATIVE_PROVIDER_H_

#include "opwright/lite/c_api_experimental.h"
#include "opwright/lite/opaque.h"

#define OW_EXPORT __attribute__((visibility("default")))

enum { OW_IDLE = 0, OW_INIT = 1, OW_PREPARE = 2, OW_INVOKE = 3, OW_FREE = 4 }; /* OwHost.step */

/* What the interpreter tells about a subgraph, and what operators leave for it to read. TfLiteContext.impl_ is one.
   Memory is the interpreter's; it zeroes all of it first. One thread at a time calls operators of a subgraph; reports
   may come from any. */
typedef struct OwHost {
  /* Where these are set they do the work of ow_resize_tensor and ow_add_tensors, which do it on the structs alone. */
  TfLiteStatus (*resize)(TfLiteContext* context, TfLiteTensor* tensor, TfLiteIntArray* shape); /* owns shape */
  TfLiteStatus (*add_tensors)(TfLiteContext* context, int count, int* first);
  TfLiteStatus (*get_metadata)(const TfLiteContext* context, const char* name, const char** ptr, size_t* bytes);
  size_t tensors_capacity; /* tensors that TfLiteContext.tensors has room for; those behind tensors_size are free */
  const int* inputs;       /* of the subgraph */
  const int* outputs;
  const int* variables;
  int32_t inputs_size, outputs_size, variables_size;
  int32_t step; /* which callback is running, OW_... */
  size_t nodes_size;
  const char* name;
  TfLiteExternalContext* external_contexts[kTfLiteMaxExternalContexts];
  char* report; /* texts, one a line; ends with 0 */
  size_t report_size, report_used;
  int32_t misuse;  /* calls with a null pointer or an index out of range since the callback began: it failed */
  int32_t resized; /* tensors that got another shape or other memory since this was set to 0 */
  int32_t thrown;  /* C++ exceptions that left a callback since it began: it failed */
  TfLiteNode* node; /* whose prepare or invoke ran last; null for init and free */
  struct OwBackend* backends; /* of the libraries that asked for one; ow_context_end gives them back */
} OwHost;

/* Set the functions of a context, and its impl_. tensors and tensors_size are the interpreter's. */
OW_EXPORT void ow_context_init(TfLiteContext* context, OwHost* host);
/* Give back what a context has handed to libraries; nothing of them runs in it any more. */
OW_EXPORT void ow_context_end(TfLiteContext* context);

/* One callback of a record, with what its registration_external has going first. prepare may be missing, invoke may
   not; free is called for a state other than null alone. A callback in which something was misused has failed. */
OW_EXPORT void* ow_init(const TfLiteRegistration* r, TfLiteContext* context, const char* buffer, size_t length);
OW_EXPORT void ow_free(const TfLiteRegistration* r, TfLiteContext* context, void* state);
OW_EXPORT int ow_prepare(const TfLiteRegistration* r, TfLiteContext* context, TfLiteNode* node);
OW_EXPORT int ow_invoke(const TfLiteRegistration* r, TfLiteContext* context, TfLiteNode* node);
/* What one of a node's tensors is like before and after a run: the rest of the graph relies on it. */
typedef struct OwPlace {
  int32_t index, type;
  size_t bytes;
  int32_t rank;
  const int32_t* sizes;
} OwPlace;
/* ow_invoke of a node that is run again and again: a foreign call with one argument costs half of one with three.
   Where the operator has changed what a tensor is like, or where it lies, the run has failed. */
typedef struct OwCall {
  const TfLiteRegistration* registration;
  TfLiteContext* context;
  TfLiteNode* node;
  const OwPlace* places;
  size_t places_size;
} OwCall;
OW_EXPORT int ow_run(const OwCall* call);
/* The same for nodes one after the other, up to the first that fails: its status. done: how many ran before it. */
typedef struct OwCalls {
  const OwCall* const* calls;
  size_t size, done;
} OwCalls;
OW_EXPORT int ow_run_all(OwCalls* calls);
OW_EXPORT int ow_has_invoke(const TfLiteRegistration* r);

/* Whether TfLiteOperatorCreate, in any of its generations, made this, and it lives. Reads nothing behind the pointer. */
OW_EXPORT int ow_is_operator(const void* pointer);
/* The classic record of such an operator; its identity with it. */
OW_EXPORT void ow_operator_registration(const TfLiteOperator* op, TfLiteRegistration* r);

/* Call `record function(void)`, whether it gives a record by value or a pointer. buffer: 256 bytes, all 0, that a
   record by value is left in. result: the pointer otherwise. Gives 1 for a record by value; 2 where the function threw a
   C++ exception, whose description the buffer then has. */
OW_EXPORT int ow_call_by_value(void* function, void* buffer, void** result);

/* What MutableOpResolver::AddCustom and ::AddBuiltin were called with on this thread between begin and end. */
typedef struct OwAdded {
  const char* name; /* null for a builtin operator */
  int32_t builtin_code, version;
  const TfLiteRegistration* from;  /* where the record was: more of it may be there than is certain */
  TfLiteRegistration registration; /* its first 64 bytes */
} OwAdded;
OW_EXPORT void ow_added_begin(void);
OW_EXPORT int ow_added(const OwAdded** added);
OW_EXPORT void ow_added_end(void);

/* The work of TfLiteContext::ResizeTensor and ::AddTensors on the structs. A new shape takes the place of dims, memory
   on the heap becomes as large as it must be, memory of the arena becomes null: to be planned. */
OW_EXPORT TfLiteStatus ow_resize_tensor(TfLiteContext* context, TfLiteTensor* tensor, TfLiteIntArray* shape);
OW_EXPORT TfLiteStatus ow_add_tensors(TfLiteContext* context, int count, int* first);

OW_EXPORT size_t ow_size_of(int what); /* 0 OwHost, 1 TfLiteContext, 2 TfLiteTensor, 3 TfLiteNode, 4 TfLiteRegistration */
OW_EXPORT int64_t ow_blocks(void);     /* arrays, tensor memory and records that were allocated here and live still */

/* --- between the files; not exported ------------------------------------------------------------------------------- */

#define OW_INSIDE __attribute__((visibility("hidden")))

extern OW_INSIDE _Thread_local OwHost* ow_here; /* of the callback this thread is in */

/* Add a text to a host's report; where there is no host, to stderr. */
OW_INSIDE void ow_report(OwHost* host, const char* format, ...) __attribute__((format(printf, 2, 3)));
OW_INSIDE void ow_report_va(OwHost* host, const char* format, va_list arguments);
/* The same for a call that should not have been made: the callback it happens in has failed. */
OW_INSIDE void ow_misuse(const char* function, const char* what);
OW_INSIDE void ow_misused_index(const char* function, long long index, size_t count);

/* function(a, b, c, d), which may take fewer. Null where it threw a C++ exception, which ow_thrown is told about. */
OW_INSIDE void* ow_call(void* function, void* a, void* b, void* c, void* d);
OW_INSIDE void ow_thrown(const char* words);

OW_INSIDE TfLiteExternalContext* ow_backend(TfLiteContext* context, const void* caller);

OW_INSIDE void* ow_alloc(size_t bytes); /* malloc, calloc(1, ...), realloc and free of what ow_blocks counts */
OW_INSIDE void* ow_zeroed(size_t bytes);
OW_INSIDE void* ow_realloc(void* block, size_t bytes);
OW_INSIDE void ow_release(void* block);

/* Bits of an element; 0 for types without a fixed size. */
OW_INSIDE int ow_bits(TfLiteType type);
/* Bytes of a shape's elements. Gives 0 where the type has no size or a size is negative or too large. */
OW_INSIDE int ow_bytes_of(TfLiteType type, const TfLiteIntArray* shape, size_t* bytes);

/* The same for an index of so many. */
#define OW_REQUIRE_INDEX(index, count, otherwise)                                      \
  do {                                                                                 \
    if ((index) < 0 || (size_t)(index) >= (size_t)(count)) {                           \
      ow_misused_index(__func__, (long long)(index), (size_t)(count));                 \
      return otherwise;                                                                \
    }                                                                                  \
  } while (0)

#define OW_REQUIRE(condition, otherwise)                       \
  do {                                                         \
    if (!(condition)) {                                        \
      ow_misuse(__func__, #condition " does not hold");        \
      return otherwise;                                        \
    }                                                          \
  } while (0)

#endif
