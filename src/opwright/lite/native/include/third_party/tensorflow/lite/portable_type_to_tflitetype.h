#include "opwright/lite/type_of.h"
