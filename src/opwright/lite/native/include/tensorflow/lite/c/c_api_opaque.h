#include "opwright/lite/opaque.h"
