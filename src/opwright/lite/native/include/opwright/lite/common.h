/* The interface of operators with public fields: TfLiteContext, TfLiteNode, TfLiteTensor, TfLiteRegistration.

   Lives here: the structs, functions on them, the TF_LITE_ENSURE macros. Not here: the opaque interface (opaque.h,
   operator.h), C++ helpers (kernel_util.h). Fields are only ever added at the end, never moved. */
#ifndef OPWRIGHT_LITE_COMMON_H_
#define OPWRIGHT_LITE_COMMON_H_

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct TfLiteContext;
struct TfLiteNode;
struct TfLiteTensor;
struct TfLiteRegistration;

/* --- arrays that know their length; malloc makes them and free() ends them -------------------------------------- */

typedef struct TfLiteIntArray {
  int size;
  OW_TRAILING(int, data);
} TfLiteIntArray;

typedef struct TfLiteFloatArray {
  int size;
  OW_TRAILING(float, data);
} TfLiteFloatArray;

/* Bytes of an array of so many elements; 0 for a negative number. */
TFL_CAPI_EXPORT size_t TfLiteIntArrayGetSizeInBytes(int size);
/* An array whose elements are still to be written; null where there is no memory or size is negative. */
TFL_CAPI_EXPORT TfLiteIntArray* TfLiteIntArrayCreate(int size);
TFL_CAPI_EXPORT int TfLiteIntArrayEqual(const TfLiteIntArray* a, const TfLiteIntArray* b);
TFL_CAPI_EXPORT int TfLiteIntArrayEqualsArray(const TfLiteIntArray* a, int b_size, const int b_data[]);
TFL_CAPI_EXPORT TfLiteIntArray* TfLiteIntArrayCopy(const TfLiteIntArray* src);
TFL_CAPI_EXPORT void TfLiteIntArrayFree(TfLiteIntArray* a);
TFL_CAPI_EXPORT int TfLiteFloatArrayGetSizeInBytes(int size);
TFL_CAPI_EXPORT TfLiteFloatArray* TfLiteFloatArrayCreate(int size);
TFL_CAPI_EXPORT TfLiteFloatArray* TfLiteFloatArrayCopy(const TfLiteFloatArray* src);
TFL_CAPI_EXPORT void TfLiteFloatArrayFree(TfLiteFloatArray* a);

/* --- elements ------------------------------------------------------------------------------------------------------ */

typedef struct TfLiteComplex64 {
  float re, im;
} TfLiteComplex64;

typedef struct TfLiteComplex128 {
  double re, im;
} TfLiteComplex128;

typedef struct TfLiteFloat16 {
  uint16_t data;
} TfLiteFloat16;

typedef struct TfLiteBFloat16 {
  uint16_t data;
} TfLiteBFloat16;

TFL_CAPI_EXPORT const char* TfLiteTypeGetName(TfLiteType type);

/* --- tensors ------------------------------------------------------------------------------------------------------- */

/* Scales and zero points, one of each or one for each index of quantized_dimension. */
typedef struct TfLiteAffineQuantization {
  TfLiteFloatArray* scale;
  TfLiteIntArray* zero_point;
  int32_t quantized_dimension;
} TfLiteAffineQuantization;

/* Here and in the next, scales and zero points are tensors, given by their indices. */
typedef struct TfLiteBlockwiseQuantization {
  int32_t scale;
  int32_t zero_point;
  int32_t blocksize;
  int32_t quantized_dimension;
} TfLiteBlockwiseQuantization;

typedef struct TfLiteMultiAxisQuantization {
  int32_t scales;
  int32_t zero_points;
  int32_t blocksize;
  TfLiteIntArray* quantized_dimensions;
} TfLiteMultiAxisQuantization;

/* A tensor's memory, under each of the types it may have. */
typedef union TfLitePtrUnion {
  int32_t* i32;
  uint32_t* u32;
  int64_t* i64;
  uint64_t* u64;
  float* f;
  TfLiteFloat16* f16;
  TfLiteBFloat16* bf16;
  double* f64;
  char* raw;
  const char* raw_const;
  uint8_t* uint8;
  bool* b;
  int16_t* i16;
  uint16_t* ui16;
  TfLiteComplex64* c64;
  TfLiteComplex128* c128;
  int8_t* int8;
  void* data;
} TfLitePtrUnion;

typedef struct TfLiteDimensionMetadata {
  TfLiteDimensionType format;
  int dense_size;
  TfLiteIntArray* array_segments;
  TfLiteIntArray* array_indices;
} TfLiteDimensionMetadata;

typedef struct TfLiteSparsity {
  TfLiteIntArray* traversal_order;
  TfLiteIntArray* block_map;
  TfLiteDimensionMetadata* dim_metadata;
  int dim_metadata_size;
} TfLiteSparsity;

typedef struct TfLiteCustomAllocation {
  void* data;
  size_t bytes;
} TfLiteCustomAllocation;

typedef struct TfLiteAllocator {
  void* data;
  void* (*allocate)(void* data, size_t bytes, size_t alignment);
  void* (*reallocate)(void* data, void* block, size_t old_bytes, size_t new_bytes, size_t alignment);
  void (*deallocate)(void* data, void* block, size_t bytes, size_t alignment);
} TfLiteAllocator;

typedef struct TfLiteTensor {
  TfLiteType type;
  TfLitePtrUnion data;  /* null until memory is planned: an operator's prepare sees values of constants alone */
  TfLiteIntArray* dims; /* the shape; change it through TfLiteContext::ResizeTensor */
  TfLiteQuantizationParams params;
  TfLiteAllocationType allocation_type;
  size_t bytes;
  const void* allocation;
  const char* name;
  TfLiteDelegate* delegate;
  TfLiteBufferHandle buffer_handle;
  bool data_is_stale;
  bool is_variable;
  TfLiteQuantization quantization;
  TfLiteSparsity* sparsity;
  const TfLiteIntArray* dims_signature; /* the shape with -1 for sizes that a run decides; may be null or empty */
} TfLiteTensor;

/* The small tensor of microcontrollers; here for TfLiteContext::GetEvalTensor, which is null in this run time. */
typedef struct TfLiteEvalTensor {
  TfLitePtrUnion data;
  TfLiteIntArray* dims;
  TfLiteType type;
} TfLiteEvalTensor;

TFL_CAPI_EXPORT void TfLiteTensorDataFree(TfLiteTensor* t);
TFL_CAPI_EXPORT void TfLiteTensorDataFreeWithAllocator(TfLiteTensor* t, TfLiteAllocator* allocator);
TFL_CAPI_EXPORT void TfLiteQuantizationFree(TfLiteQuantization* quantization);
TFL_CAPI_EXPORT void TfLiteSparsityFree(TfLiteSparsity* sparsity);
TFL_CAPI_EXPORT void TfLiteTensorFree(TfLiteTensor* t);
TFL_CAPI_EXPORT void TfLiteTensorReset(TfLiteType type, const char* name, TfLiteIntArray* dims,
                                       TfLiteQuantizationParams quantization, char* buffer, size_t size,
                                       TfLiteAllocationType allocation_type, const void* allocation, bool is_variable,
                                       TfLiteTensor* tensor);
/* Shape and elements of one tensor into another of as many bytes. */
TFL_CAPI_EXPORT TfLiteStatus TfLiteTensorCopy(const TfLiteTensor* src, TfLiteTensor* dst);
TFL_CAPI_EXPORT TfLiteTensor TfLiteTensorClone(TfLiteTensor src);
/* The three below give a tensor on the heap (dynamic or persistent read-only) room for num_bytes. Others stay. */
TFL_CAPI_EXPORT TfLiteStatus TfLiteTensorResizeMaybeCopy(size_t num_bytes, TfLiteTensor* tensor, bool preserve_data);
TFL_CAPI_EXPORT TfLiteStatus TfLiteTensorResizeMaybeCopyWithAllocator(size_t num_bytes, TfLiteTensor* tensor,
                                                                      bool preserve_data, TfLiteAllocator* allocator);
TFL_CAPI_EXPORT TfLiteStatus TfLiteTensorRealloc(size_t num_bytes, TfLiteTensor* tensor);
TFL_CAPI_EXPORT TfLiteStatus TfLiteTensorReallocWithAllocator(size_t num_bytes, TfLiteTensor* tensor,
                                                              TfLiteAllocator* allocator);
TFL_CAPI_EXPORT const TfLiteIntArray* TfLiteTensorGetDimsSignature(const TfLiteTensor* t);
TFL_CAPI_EXPORT TfLiteAllocationStrategy TfLiteTensorGetAllocationStrategy(const TfLiteTensor* t);
TFL_CAPI_EXPORT TfLiteRunStability TfLiteTensorGetBufferAddressStability(const TfLiteTensor* t);
TFL_CAPI_EXPORT TfLiteRunStability TfLiteTensorGetDataStability(const TfLiteTensor* t);
TFL_CAPI_EXPORT TfLiteRunStep TfLiteTensorGetDataKnownStep(const TfLiteTensor* t);
TFL_CAPI_EXPORT TfLiteRunStep TfLiteTensorGetShapeKnownStep(const TfLiteTensor* t);

/* --- nodes and delegates ------------------------------------------------------------------------------------------- */

/* One use of an operator in a graph. Arrays hold indices into TfLiteContext::tensors. */
typedef struct TfLiteNode {
  TfLiteIntArray* inputs; /* kTfLiteOptionalTensor where one is left out */
  TfLiteIntArray* outputs;
  TfLiteIntArray* intermediates;
  TfLiteIntArray* temporaries; /* an operator may put another array here, after freeing this one */
  void* user_data;             /* what init gave */
  void* builtin_data;
  const void* custom_initial_data;
  int custom_initial_data_size;
  TfLiteDelegate* delegate;
  bool might_have_side_effect;
} TfLiteNode;

struct TfLiteDelegate {
  void* data_;
  TfLiteStatus (*Prepare)(struct TfLiteContext* context, TfLiteDelegate* delegate);
  TfLiteStatus (*CopyFromBufferHandle)(struct TfLiteContext* context, TfLiteDelegate* delegate,
                                       TfLiteBufferHandle buffer_handle, TfLiteTensor* tensor);
  TfLiteStatus (*CopyToBufferHandle)(struct TfLiteContext* context, TfLiteDelegate* delegate,
                                     TfLiteBufferHandle buffer_handle, TfLiteTensor* tensor);
  void (*FreeBufferHandle)(struct TfLiteContext* context, TfLiteDelegate* delegate, TfLiteBufferHandle* handle);
  int64_t flags;
  TfLiteOpaqueDelegateBuilder* opaque_delegate_builder;
};

TFL_CAPI_EXPORT TfLiteDelegate TfLiteDelegateCreate(void);

typedef struct TfLiteDelegateParams {
  TfLiteDelegate* delegate;
  TfLiteIntArray* nodes_to_replace;
  TfLiteIntArray* input_tensors;
  TfLiteIntArray* output_tensors;
} TfLiteDelegateParams;

typedef struct TfLiteOpaqueDelegateParams {
  TfLiteOpaqueDelegate* delegate;
  void* delegate_data;
  TfLiteIntArray* nodes_to_replace;
  TfLiteIntArray* input_tensors;
  TfLiteIntArray* output_tensors;
} TfLiteOpaqueDelegateParams;

/* --- the context --------------------------------------------------------------------------------------------------- */

typedef struct TfLiteExternalContext {
  TfLiteExternalContextType type;
  TfLiteStatus (*Refresh)(struct TfLiteContext* context);
} TfLiteExternalContext;

/* The subgraph an operator runs in. Functions marked (delegates) refuse when an operator calls them; those marked
   (microcontrollers) are null. */
typedef struct TfLiteContext {
  size_t tensors_size;
  TfLiteStatus (*GetExecutionPlan)(struct TfLiteContext* context, TfLiteIntArray** execution_plan); /* (delegates) */
  TfLiteTensor* tensors;
  void* impl_;
  /* Gives a tensor a new shape and takes the array, whether it succeeds or not. */
  TfLiteStatus (*ResizeTensor)(struct TfLiteContext* context, TfLiteTensor* tensor, TfLiteIntArray* new_size);
  void (*ReportError)(struct TfLiteContext* context, const char* msg, ...);
  /* Adds tensors without type or shape and writes the index of the first: scratch memory for one node. */
  TfLiteStatus (*AddTensors)(struct TfLiteContext* context, int tensors_to_add, int* first_new_tensor_index);
  TfLiteStatus (*GetNodeAndRegistration)(struct TfLiteContext* context, int node_index, TfLiteNode** node,
                                         struct TfLiteRegistration** registration); /* (delegates) */
  TfLiteStatus (*ReplaceNodeSubsetsWithDelegateKernels)(struct TfLiteContext* context,
                                                        struct TfLiteRegistration registration,
                                                        const TfLiteIntArray* nodes_to_replace,
                                                        TfLiteDelegate* delegate); /* (delegates) */
  int recommended_num_threads; /* -1: nobody said */
  TfLiteExternalContext* (*GetExternalContext)(struct TfLiteContext* context, TfLiteExternalContextType type);
  void (*SetExternalContext)(struct TfLiteContext* context, TfLiteExternalContextType type,
                             TfLiteExternalContext* external_context);
  bool allow_fp32_relax_to_fp16;
  void* profiler;
  void* (*AllocatePersistentBuffer)(struct TfLiteContext* context, size_t bytes); /* (microcontrollers), as the next 4 */
  TfLiteStatus (*AllocateBufferForEval)(struct TfLiteContext* context, size_t bytes, void** ptr);
  TfLiteStatus (*RequestScratchBufferInArena)(struct TfLiteContext* context, size_t bytes, int* buffer_idx);
  void* (*GetScratchBuffer)(struct TfLiteContext* context, int buffer_idx);
  TfLiteStatus (*ResizeTensorExplicit)(struct TfLiteContext* context, TfLiteTensor* tensor, int dims, const int* shape);
  TfLiteStatus (*PreviewDelegatePartitioning)(struct TfLiteContext* context, const TfLiteIntArray* nodes_to_replace,
                                              TfLiteDelegateParams** partition_params, int* num_partitions);
  TfLiteTensor* (*GetTensor)(const struct TfLiteContext* context, int tensor_idx);         /* (microcontrollers) */
  TfLiteEvalTensor* (*GetEvalTensor)(const struct TfLiteContext* context, int tensor_idx); /* (microcontrollers) */
  TfLiteStatus (*GetModelMetadata)(const struct TfLiteContext* context, const char* name, const char** ptr,
                                   size_t* bytes);
  TfLiteStatus (*AcquireSubgraphContext)(struct TfLiteContext* context, int subgraph_index,
                                         struct TfLiteContext** acquired_context); /* (delegates) */
  TfLiteStatus (*ReleaseSubgraphContext)(struct TfLiteContext* context, int subgraph_index); /* (delegates) */
#if defined(_WIN32)
  TfLiteIntArray* (*TfLiteIntArrayCreate)(int size);
  void (*TfLiteIntArrayFree)(TfLiteIntArray* a);
#endif
} TfLiteContext;

/* --- operators ----------------------------------------------------------------------------------------------------- */

/* An operator: up to four callbacks, of which a CPU operator needs invoke. The rest is filled in where it is
   registered, but for registration_external: the callbacks of that operator go before those that stand here. */
typedef struct TfLiteRegistration {
  void* (*init)(TfLiteContext* context, const char* buffer, size_t length);
  void (*free)(TfLiteContext* context, void* buffer);
  TfLiteStatus (*prepare)(TfLiteContext* context, TfLiteNode* node);
  TfLiteStatus (*invoke)(TfLiteContext* context, TfLiteNode* node);
  const char* (*profiling_string)(const TfLiteContext* context, const TfLiteNode* node);
  int32_t builtin_code;
  const char* custom_name;
  int version;
  TfLiteOperator* registration_external;
  TfLiteAsyncKernel* (*async_kernel)(TfLiteContext* context, TfLiteNode* node);
  uint64_t inplace_operator;
} TfLiteRegistration;

/* The record as it was until 2023-06, until 2023-03 and until 2022-04. */
typedef struct TfLiteRegistration_V3 {
  void* (*init)(TfLiteContext* context, const char* buffer, size_t length);
  void (*free)(TfLiteContext* context, void* buffer);
  TfLiteStatus (*prepare)(TfLiteContext* context, TfLiteNode* node);
  TfLiteStatus (*invoke)(TfLiteContext* context, TfLiteNode* node);
  const char* (*profiling_string)(const TfLiteContext* context, const TfLiteNode* node);
  int32_t builtin_code;
  const char* custom_name;
  int version;
  TfLiteOperator* registration_external;
  TfLiteAsyncKernel* (*async_kernel)(TfLiteContext* context, TfLiteNode* node);
} TfLiteRegistration_V3;

typedef struct TfLiteRegistration_V2 {
  void* (*init)(TfLiteContext* context, const char* buffer, size_t length);
  void (*free)(TfLiteContext* context, void* buffer);
  TfLiteStatus (*prepare)(TfLiteContext* context, TfLiteNode* node);
  TfLiteStatus (*invoke)(TfLiteContext* context, TfLiteNode* node);
  const char* (*profiling_string)(const TfLiteContext* context, const TfLiteNode* node);
  int32_t builtin_code;
  const char* custom_name;
  int version;
  TfLiteOperator* registration_external;
} TfLiteRegistration_V2;

typedef struct TfLiteRegistration_V1 {
  void* (*init)(TfLiteContext* context, const char* buffer, size_t length);
  void (*free)(TfLiteContext* context, void* buffer);
  TfLiteStatus (*prepare)(TfLiteContext* context, TfLiteNode* node);
  TfLiteStatus (*invoke)(TfLiteContext* context, TfLiteNode* node);
  const char* (*profiling_string)(const TfLiteContext* context, const TfLiteNode* node);
  int32_t builtin_code;
  const char* custom_name;
  int version;
} TfLiteRegistration_V1;

/* What init gives to say that it failed. */
TFL_CAPI_EXPORT void* TfLiteKernelInitFailed(void);

#ifdef __cplusplus
}
#endif

/* --- checks that report and return --------------------------------------------------------------------------------- */

/* Arguments may be evaluated twice. Whatever was allocated before a check that fails is lost: check first. */

#if defined(TF_LITE_STRIP_ERROR_STRINGS)
#define TF_LITE_KERNEL_LOG(context, ...) ((void)(context))
#define TF_LITE_MAYBE_KERNEL_LOG(context, ...) ((void)(context))
#else
#define TF_LITE_KERNEL_LOG(context, ...) (context)->ReportError((context), __VA_ARGS__)
#define TF_LITE_MAYBE_KERNEL_LOG(context, ...)                              \
  do {                                                                      \
    if ((context) != NULL) (context)->ReportError((context), __VA_ARGS__);  \
  } while (0)
#endif

#define TF_LITE_ENSURE_MSG(context, value, ...)                    \
  do {                                                             \
    if (!(value)) {                                                \
      TF_LITE_KERNEL_LOG((context), __FILE__ " " __VA_ARGS__);     \
      return kTfLiteError;                                         \
    }                                                              \
  } while (0)

#define TF_LITE_ENSURE(context, a)                                                        \
  do {                                                                                    \
    if (!(a)) {                                                                           \
      TF_LITE_KERNEL_LOG((context), "%s:%d %s was not true.", __FILE__, __LINE__, #a);    \
      return kTfLiteError;                                                                \
    }                                                                                     \
  } while (0)

#define TF_LITE_ENSURE_STATUS(a)                            \
  do {                                                      \
    const TfLiteStatus ow_status_ = (a);                    \
    if (ow_status_ != kTfLiteOk) return ow_status_;         \
  } while (0)

/* The message shows both values as int. */
#define TF_LITE_ENSURE_EQ(context, a, b)                                                                           \
  do {                                                                                                             \
    if ((a) != (b)) {                                                                                              \
      TF_LITE_KERNEL_LOG((context), "%s:%d %s != %s (%d != %d)", __FILE__, __LINE__, #a, #b, (a), (b));            \
      return kTfLiteError;                                                                                         \
    }                                                                                                              \
  } while (0)

#define TF_LITE_ENSURE_TYPES_EQ(context, a, b)                                                                     \
  do {                                                                                                             \
    if ((a) != (b)) {                                                                                              \
      TF_LITE_KERNEL_LOG((context), "%s:%d %s != %s (%s != %s)", __FILE__, __LINE__, #a, #b, TfLiteTypeGetName(a), \
                         TfLiteTypeGetName(b));                                                                    \
      return kTfLiteError;                                                                                         \
    }                                                                                                              \
  } while (0)

#define TF_LITE_ENSURE_NEAR(context, a, b, epsilon)                                                                \
  do {                                                                                                             \
    const double ow_difference_ = (double)(a) - (double)(b);                                                       \
    if (!(ow_difference_ <= (double)(epsilon) && -ow_difference_ <= (double)(epsilon))) {                          \
      TF_LITE_KERNEL_LOG((context), "%s:%d %s not near %s (%f != %f)", __FILE__, __LINE__, #a, #b, (double)(a),    \
                         (double)(b));                                                                             \
      return kTfLiteError;                                                                                         \
    }                                                                                                              \
  } while (0)

/* TF_LITE_ENSURE_OK(context, status) or TF_LITE_ENSURE_OK(context, status, format, ...). */
#define OW_PICK_10(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, name, ...) name
#define OW_OK_ALONE(context, status) \
  do {                               \
    (void)(context);                 \
    TF_LITE_ENSURE_STATUS(status);   \
  } while (0)
#define OW_OK_SAID(context, status, ...)             \
  do {                                               \
    const TfLiteStatus ow_status_ = (status);        \
    if (ow_status_ != kTfLiteOk) {                   \
      TF_LITE_KERNEL_LOG((context), __VA_ARGS__);    \
      return ow_status_;                             \
    }                                                \
  } while (0)
#define TF_LITE_ENSURE_OK(context, ...)                                                                              \
  OW_PICK_10(__VA_ARGS__, OW_OK_SAID, OW_OK_SAID, OW_OK_SAID, OW_OK_SAID, OW_OK_SAID, OW_OK_SAID, OW_OK_SAID,        \
             OW_OK_SAID, OW_OK_SAID, OW_OK_ALONE, 0)                                                                 \
  (context, __VA_ARGS__)

#endif
