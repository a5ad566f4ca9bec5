#include "opwright/lite/tensor_ctypes.h"
