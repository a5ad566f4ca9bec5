#include "opwright/lite/c_api_experimental.h"
#include "opwright/lite/opaque.h"
