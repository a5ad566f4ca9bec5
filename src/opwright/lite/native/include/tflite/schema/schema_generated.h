#include "opwright/lite/schema.h"
