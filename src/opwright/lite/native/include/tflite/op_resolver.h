#include "opwright/lite/resolver.h"
