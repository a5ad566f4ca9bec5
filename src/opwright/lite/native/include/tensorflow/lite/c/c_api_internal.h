#include "opwright/lite/common.h"
