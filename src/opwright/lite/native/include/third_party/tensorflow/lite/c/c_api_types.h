#include "opwright/lite/types.h"
