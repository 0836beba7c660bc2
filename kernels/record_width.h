/* record_width: alignment and padding of fields in memory; only record.c includes it. Tests compile record.c with another
 * version (tests/wide), whose records are wider than necessary, and every value must stay the same. */
#ifndef SPTX_RECORD_WIDTH_H
#define SPTX_RECORD_WIDTH_H

enum {
    RECORD_ALIGN = 16, /* a field's columns begin at a multiple of this many bytes */
    RECORD_SPARE = 0   /* unused bytes after a field's columns */
};

#endif
