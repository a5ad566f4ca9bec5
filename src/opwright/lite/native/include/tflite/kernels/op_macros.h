#include "opwright/lite/compatibility.h"
