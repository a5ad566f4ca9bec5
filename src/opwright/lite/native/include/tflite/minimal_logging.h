#include "opwright/lite/logging.h"
