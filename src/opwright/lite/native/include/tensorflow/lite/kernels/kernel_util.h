#include "opwright/lite/kernel_util.h"
