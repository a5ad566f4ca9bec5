/* tflite::MutableOpResolver, as functions that register a library's operators take it:

       extern "C" void RegisterMyOps(tflite::MutableOpResolver* resolver) {
         resolver->AddCustom("MyOp", tflite::ops::custom::Register_MY_OP());
       }

   lite.load_custom_ops(path, "RegisterMyOps") calls such a function and takes what it adds. */
#ifndef OPWRIGHT_LITE_RESOLVER_H_
#define OPWRIGHT_LITE_RESOLVER_H_

#ifndef __cplusplus
#error "resolver.h is for C++"
#endif

#include "common.h"
#include "schema.h"

namespace tflite {

class TFL_CAPI_EXPORT MutableOpResolver {
 public:
  void AddCustom(const char* name, const TfLiteRegistration* registration, int version = 1);
  void AddCustom(const char* name, const TfLiteRegistration* registration, int min_version, int max_version);
  void AddBuiltin(BuiltinOperator op, const TfLiteRegistration* registration, int version = 1);
  void AddBuiltin(BuiltinOperator op, const TfLiteRegistration* registration, int min_version, int max_version);
  /* What is there is the interpreter's to know: nothing is copied, and nothing found. */
  void AddAll(const MutableOpResolver& other);
  const TfLiteRegistration* FindOp(BuiltinOperator op, int version) const;
  const TfLiteRegistration* FindOp(const char* op, int version) const;
};
typedef MutableOpResolver OpResolver;

namespace ops {
namespace builtin {
/* The builtin operators are the interpreter's in any case. */
class BuiltinOpResolver : public MutableOpResolver {};
typedef BuiltinOpResolver BuiltinOpResolverWithoutDefaultDelegates;
}  // namespace builtin
}  // namespace ops

}  // namespace tflite

#endif
