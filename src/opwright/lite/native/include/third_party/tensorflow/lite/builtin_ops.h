#include "opwright/lite/builtin_ops.h"
