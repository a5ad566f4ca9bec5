#include "opwright/lite/lookup.h"
