/* Checks that end the process, as kernels of the official sources make them: for what no input can bring about.

   An operator that is given something wrong says so by TF_LITE_ENSURE and goes on living. */
#ifndef OPWRIGHT_LITE_COMPATIBILITY_H_
#define OPWRIGHT_LITE_COMPATIBILITY_H_

#include <stdio.h>
#include <stdlib.h>

#include "common.h"

#ifndef TFLITE_ABORT
#define TFLITE_ABORT abort()
#endif

#ifndef TFLITE_CHECK
#define TFLITE_CHECK(condition)                                                        \
  do {                                                                                 \
    if (!(condition)) {                                                                \
      fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition);    \
      TFLITE_ABORT;                                                                    \
    }                                                                                  \
  } while (0)
#define TFLITE_CHECK_EQ(x, y) TFLITE_CHECK((x) == (y))
#define TFLITE_CHECK_NE(x, y) TFLITE_CHECK((x) != (y))
#define TFLITE_CHECK_GE(x, y) TFLITE_CHECK((x) >= (y))
#define TFLITE_CHECK_GT(x, y) TFLITE_CHECK((x) > (y))
#define TFLITE_CHECK_LE(x, y) TFLITE_CHECK((x) <= (y))
#define TFLITE_CHECK_LT(x, y) TFLITE_CHECK((x) < (y))
#endif

/* Where NDEBUG is defined these look at nothing, but what they name still counts as used. */
#ifndef TFLITE_DCHECK
#if defined(NDEBUG)
#define TFLITE_DCHECK(condition) ((void)sizeof(condition))
#else
#define TFLITE_DCHECK(condition) TFLITE_CHECK(condition)
#endif
#define TFLITE_DCHECK_EQ(x, y) TFLITE_DCHECK((x) == (y))
#define TFLITE_DCHECK_NE(x, y) TFLITE_DCHECK((x) != (y))
#define TFLITE_DCHECK_GE(x, y) TFLITE_DCHECK((x) >= (y))
#define TFLITE_DCHECK_GT(x, y) TFLITE_DCHECK((x) > (y))
#define TFLITE_DCHECK_LE(x, y) TFLITE_DCHECK((x) <= (y))
#define TFLITE_DCHECK_LT(x, y) TFLITE_DCHECK((x) < (y))
#endif

#ifndef TFLITE_EXPECT_TRUE
#if defined(__GNUC__)
#define TFLITE_EXPECT_TRUE(condition) __builtin_expect(!!(condition), 1)
#define TFLITE_EXPECT_FALSE(condition) __builtin_expect(!!(condition), 0)
#else
#define TFLITE_EXPECT_TRUE(condition) (condition)
#define TFLITE_EXPECT_FALSE(condition) (condition)
#endif
#endif

/* What no operator goes on after. */
#ifndef TF_LITE_FATAL
#define TF_LITE_FATAL(msg)               \
  do {                                   \
    fprintf(stderr, "%s\n", (msg));      \
    TFLITE_ABORT;                        \
  } while (0)
#define TF_LITE_ASSERT(x)                \
  do {                                   \
    if (!(x)) TF_LITE_FATAL(#x);         \
  } while (0)
#define TF_LITE_ASSERT_EQ(x, y)                           \
  do {                                                    \
    if ((x) != (y)) TF_LITE_FATAL(#x " is not " #y);      \
  } while (0)
#endif

/* The usual default of a switch over types: reports and returns. */
#ifndef TF_LITE_UNSUPPORTED_TYPE
#define TF_LITE_UNSUPPORTED_TYPE(context, type, op_name)                                                            \
  do {                                                                                                              \
    TF_LITE_KERNEL_LOG((context), "%s:%d %s does not take type %s", __FILE__, __LINE__, (op_name),                  \
                       TfLiteTypeGetName(type));                                                                    \
    return kTfLiteError;                                                                                            \
  } while (0)
#endif

#ifdef __cplusplus
namespace tflite { /* older kernels say int32 */
typedef int8_t int8;
typedef uint8_t uint8;
typedef int16_t int16;
typedef uint16_t uint16;
typedef int32_t int32;
typedef uint32_t uint32;
}  // namespace tflite
#endif

#endif
