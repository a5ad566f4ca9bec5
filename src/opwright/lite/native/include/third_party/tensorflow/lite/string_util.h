#include "opwright/lite/string_util.h"
