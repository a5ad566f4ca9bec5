#include "opwright/lite/operator.h"
