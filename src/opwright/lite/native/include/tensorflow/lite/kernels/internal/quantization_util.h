#include "opwright/lite/arithmetic.h"
