#include "opwright/lite/tensor_ctypes.h"
#include "opwright/lite/arithmetic.h"
#include "opwright/lite/lookup.h"
