#include "opwright/lite/async.h"
