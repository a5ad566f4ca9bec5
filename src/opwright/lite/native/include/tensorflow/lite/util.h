#include "opwright/lite/int_arrays.h"
