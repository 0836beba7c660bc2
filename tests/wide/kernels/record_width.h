/* record_width: replaces kernels/record_width.h, for records that are wider than necessary. */
#ifndef SPTX_RECORD_WIDTH_H
#define SPTX_RECORD_WIDTH_H

enum { RECORD_ALIGN = 32, RECORD_SPARE = 32 };

#endif
