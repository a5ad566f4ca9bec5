#include "opwright/lite/c_api.h"
#include "opwright/lite/opaque.h"
