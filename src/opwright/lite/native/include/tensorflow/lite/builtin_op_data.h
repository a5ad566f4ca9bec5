#include "opwright/lite/builtin_op_data.h"
