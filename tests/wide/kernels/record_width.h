/* record_width: records that are wider than they must be, in the place of kernels/record_width.h. */
#ifndef SPTX_RECORD_WIDTH_H
#define SPTX_RECORD_WIDTH_H

enum { RECORD_ALIGN = 32, RECORD_SPARE = 32 };

#endif
