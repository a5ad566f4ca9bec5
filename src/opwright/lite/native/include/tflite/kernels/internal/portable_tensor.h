#include "opwright/lite/writers.h"
