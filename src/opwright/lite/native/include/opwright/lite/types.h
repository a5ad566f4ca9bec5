/* The words of the TensorFlow Lite C interface: export macro, enumerations, small value types, opaque names.

   Lives here: what both interfaces of operators share. Not here: the structs with public fields (common.h), functions. */
#ifndef OPWRIGHT_LITE_TYPES_H_
#define OPWRIGHT_LITE_TYPES_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(TFL_STATIC_LIBRARY_BUILD)
#define TFL_CAPI_EXPORT
#elif defined(_WIN32)
#if defined(TFL_COMPILE_LIBRARY)
#define TFL_CAPI_EXPORT __declspec(dllexport)
#else
#define TFL_CAPI_EXPORT __declspec(dllimport)
#endif
#else
#define TFL_CAPI_EXPORT __attribute__((visibility("default")))
#endif

#if defined(TF_LITE_STATIC_MEMORY)
#error "TF_LITE_STATIC_MEMORY is the layout of microcontrollers: tensors and nodes would not be what a run time hands over"
#endif

/* Arrays whose length stands beside them. C++ has no name for these, Microsoft's compiler wants one element. */
#if defined(_MSC_VER)
#define OW_TRAILING(type, name) type name[1]
#elif defined(__cplusplus)
#define OW_TRAILING(type, name) __extension__ type name[0]
#else
#define OW_TRAILING(type, name) type name[]
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* What callbacks and most functions give. Prepare may say OutputShapeNotKnown: fine so far, the output is dynamic. */
typedef enum TfLiteStatus {
  kTfLiteOk = 0,
  kTfLiteError = 1,
  kTfLiteDelegateError = 2,
  kTfLiteApplicationError = 3,
  kTfLiteDelegateDataNotFound = 4,
  kTfLiteDelegateDataWriteError = 5,
  kTfLiteDelegateDataReadError = 6,
  kTfLiteUnresolvedOps = 7,
  kTfLiteCancelled = 8,
  kTfLiteOutputShapeNotKnown = 9
} TfLiteStatus;

/* Element types. These are not the numbers of the file format, which options of converted operators may hold. */
typedef enum TfLiteType {
  kTfLiteNoType = 0,
  kTfLiteFloat32 = 1,
  kTfLiteInt32 = 2,
  kTfLiteUInt8 = 3,
  kTfLiteInt64 = 4,
  kTfLiteString = 5,
  kTfLiteBool = 6,
  kTfLiteInt16 = 7,
  kTfLiteComplex64 = 8,
  kTfLiteInt8 = 9,
  kTfLiteFloat16 = 10,
  kTfLiteFloat64 = 11,
  kTfLiteComplex128 = 12,
  kTfLiteUInt64 = 13,
  kTfLiteResource = 14,
  kTfLiteVariant = 15,
  kTfLiteUInt32 = 16,
  kTfLiteUInt16 = 17,
  kTfLiteInt4 = 18,
  kTfLiteBFloat16 = 19,
  kTfLiteInt2 = 20,
  kTfLiteUInt4 = 21,
  kTfLiteFloat8E4M3FN = 22,
  kTfLiteFloat8E5M2 = 23
} TfLiteType;

/* Who holds a tensor's memory: the model file, the arena (for one run or for good), the heap, nobody. */
typedef enum TfLiteAllocationType {
  kTfLiteMemNone = 0,
  kTfLiteMmapRo = 1,
  kTfLiteArenaRw = 2,
  kTfLiteArenaRwPersistent = 3,
  kTfLiteDynamic = 4,
  kTfLitePersistentRo = 5,
  kTfLiteCustom = 6,
  kTfLiteVariantObject = 7,
  kTfLiteNonCpu = 8
} TfLiteAllocationType;

typedef enum TfLiteAllocationStrategy {
  kTfLiteAllocationStrategyUnknown = 0,
  kTfLiteAllocationStrategyNone = 1,
  kTfLiteAllocationStrategyMMap = 2,
  kTfLiteAllocationStrategyArena = 3,
  kTfLiteAllocationStrategyMalloc = 4,
  kTfLiteAllocationStrategyNew = 5
} TfLiteAllocationStrategy;

/* For how long an address or values stay as they are. */
typedef enum TfLiteRunStability {
  kTfLiteRunStabilityUnknown = 0,
  kTfLiteRunStabilityUnstable = 1,
  kTfLiteRunStabilitySingleRun = 2,
  kTfLiteRunStabilityAcrossRuns = 3
} TfLiteRunStability;

typedef enum TfLiteRunStep {
  kTfLiteRunStepUnknown = 0,
  kTfLiteRunStepInit = 1,
  kTfLiteRunStepPrepare = 2,
  kTfLiteRunStepEval = 3
} TfLiteRunStep;

typedef enum TfLiteQuantizationType {
  kTfLiteNoQuantization = 0,
  kTfLiteAffineQuantization = 1,
  kTfLiteBlockwiseQuantization = 2,
  kTfLiteMultiAxisQuantization = 3
} TfLiteQuantizationType;

typedef enum TfLiteExternalContextType {
  kTfLiteEigenContext = 0,
  kTfLiteGemmLowpContext = 1,
  kTfLiteEdgeTpuContext = 2,
  kTfLiteCpuBackendContext = 3,
  kTfLiteLiteRtBufferContext = 4,
  kTfLiteMaxExternalContexts = 5
} TfLiteExternalContextType;

typedef enum TfLiteDimensionType { kTfLiteDimDense = 0, kTfLiteDimSparseCSR = 1 } TfLiteDimensionType;

typedef enum TfLiteCustomAllocationFlags {
  kTfLiteCustomAllocationFlagsNone = 0,
  kTfLiteCustomAllocationFlagsSkipAlignCheck = 1
} TfLiteCustomAllocationFlags;

typedef enum TfLiteDelegateFlags {
  kTfLiteDelegateFlagsNone = 0,
  kTfLiteDelegateFlagsAllowDynamicTensors = 1,
  kTfLiteDelegateFlagsRequirePropagatedShapes = 2,
  kTfLiteDelegateFlagsPerOperatorProfiling = 4,
  kTfLiteDelegateFlagsHintFullyDelegatedToSingleDelegate = 8
} TfLiteDelegateFlags;

/* Which inputs an operator may overwrite with its outputs: bits of 64, which C enumerations do not hold. */
#ifdef __cplusplus
typedef enum TfLiteInPlaceOp : uint64_t {
  kTfLiteInplaceOpNone = 0,
  kTfLiteInplaceOpDataUnmodified = 1,
  kTfLiteInplaceInputCanBeSharedWithCorrespondingOutput = 2,
  kTfLiteInplaceOpInput0Shared = 4,
  kTfLiteInplaceOpInput1Shared = 8,
  kTfLiteInplaceOpInput2Shared = 16,
  kTfLiteInplaceOpMaxValue = UINT64_MAX
} TfLiteInPlaceOp;
#else
typedef uint64_t TfLiteInPlaceOp;
#define kTfLiteInplaceOpNone ((TfLiteInPlaceOp)0)
#define kTfLiteInplaceOpDataUnmodified ((TfLiteInPlaceOp)1)
#define kTfLiteInplaceInputCanBeSharedWithCorrespondingOutput ((TfLiteInPlaceOp)2)
#define kTfLiteInplaceOpInput0Shared ((TfLiteInPlaceOp)4)
#define kTfLiteInplaceOpInput1Shared ((TfLiteInPlaceOp)8)
#define kTfLiteInplaceOpInput2Shared ((TfLiteInPlaceOp)16)
#define kTfLiteInplaceOpMaxValue ((TfLiteInPlaceOp)UINT64_MAX)
#endif
enum { kTfLiteMaxSharableOpInputs = 3 };

enum { kTfLiteOptionalTensor = -1 }; /* where a node's inputs have this for an index, that input was left out */

typedef int TfLiteBufferHandle;
enum { kTfLiteNullBufferHandle = -1 };
#define kTfLiteNoBufferIdentifier SIZE_MAX

/* real = scale * (q - zero_point); {0, 0} for a tensor that has no quantisation, or one for each channel. */
typedef struct TfLiteQuantizationParams {
  float scale;
  int32_t zero_point;
} TfLiteQuantizationParams;

/* params: a TfLiteAffineQuantization (common.h) where type says so. */
typedef struct TfLiteQuantization {
  TfLiteQuantizationType type;
  void* params;
} TfLiteQuantization;

/* Both interfaces see the same things: in this run time, as in the official one, an opaque pointer points to the struct
   of the same name without Opaque. */
typedef struct TfLiteOpaqueContext TfLiteOpaqueContext;
typedef struct TfLiteOpaqueNode TfLiteOpaqueNode;
typedef struct TfLiteOpaqueTensor TfLiteOpaqueTensor;
typedef struct TfLiteOpaqueTensorBuilder TfLiteOpaqueTensorBuilder;
typedef struct TfLiteOpaqueDelegateBuilder TfLiteOpaqueDelegateBuilder;
typedef struct TfLiteDelegate TfLiteDelegate;
#if defined(TFLITE_WITH_STABLE_ABI) || defined(TFLITE_USE_OPAQUE_DELEGATE)
typedef struct TfLiteOpaqueDelegateStruct TfLiteOpaqueDelegate;
#else
typedef TfLiteDelegate TfLiteOpaqueDelegate;
#endif

/* An operator: its identity and its callbacks. TfLiteRegistrationExternal is the name it had until 2024. */
typedef struct TfLiteOperator TfLiteOperator;
typedef struct TfLiteOperator TfLiteRegistrationExternal;
typedef struct TfLiteAsyncKernel TfLiteAsyncKernel;

#ifdef __cplusplus
}
#endif

#endif
