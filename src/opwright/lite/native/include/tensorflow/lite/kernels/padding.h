#include "opwright/lite/padding.h"
