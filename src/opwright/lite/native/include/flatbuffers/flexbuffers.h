/* FlatBuffers' own header where it is installed, which also builds; else ours, which reads. */
#pragma GCC system_header
#ifdef __has_include_next
#if __has_include_next("flatbuffers/flexbuffers.h")
#include_next "flatbuffers/flexbuffers.h"
#define OW_FLEXBUFFERS_ARE_THERE
#endif
#endif
#ifndef OW_FLEXBUFFERS_ARE_THERE
#include "opwright/lite/flexbuffers.h"
#endif
