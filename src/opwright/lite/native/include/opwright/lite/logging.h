/* TFLITE_LOG(tflite::TFLITE_LOG_INFO, format, ...): lines on stderr, for what is no error of a node.

   An error of a node goes through the context, TF_LITE_KERNEL_LOG: it reaches the exception. */
#ifndef OPWRIGHT_LITE_LOGGING_H_
#define OPWRIGHT_LITE_LOGGING_H_

#ifndef __cplusplus
#error "logging.h is for C++"
#endif

#include <cstdarg>
#include <cstdio>

#include "types.h"

namespace tflite {

enum LogSeverity { TFLITE_LOG_VERBOSE = -1, TFLITE_LOG_INFO = 0, TFLITE_LOG_WARNING = 1, TFLITE_LOG_ERROR = 2 };

namespace logging_internal {
class MinimalLogger {
 public:
  static void Log(LogSeverity severity, const char* format, ...) {
    static const char* const kNames[] = {"VERBOSE: ", "INFO: ", "WARNING: ", "ERROR: "};
    va_list arguments;
    va_start(arguments, format);
    std::fputs(kNames[severity + 1], stderr);
    std::vfprintf(stderr, format, arguments);
    std::fputc('\n', stderr);
    va_end(arguments);
  }
};
}  // namespace logging_internal

}  // namespace tflite

#define TFLITE_LOG_PROD(severity, ...) tflite::logging_internal::MinimalLogger::Log(severity, __VA_ARGS__)
#define TFLITE_LOG_PROD_ONCE(severity, ...)      \
  do {                                           \
    static bool ow_said_ = false;                \
    if (!ow_said_) {                             \
      ow_said_ = true;                           \
      TFLITE_LOG_PROD(severity, __VA_ARGS__);    \
    }                                            \
  } while (0)

/* These say nothing where NDEBUG is defined. */
#if defined(NDEBUG)
#define TFLITE_LOG(severity, ...)                              \
  do {                                                         \
    if (false) TFLITE_LOG_PROD(severity, __VA_ARGS__);         \
  } while (0)
#define TFLITE_LOG_ONCE TFLITE_LOG
#else
#define TFLITE_LOG TFLITE_LOG_PROD
#define TFLITE_LOG_ONCE TFLITE_LOG_PROD_ONCE
#endif

#endif
