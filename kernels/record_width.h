/* record_width: how wide records are in memory, which record.c alone knows. Tests compile record.c with another one of these
 * (tests/wide), with wider records than there must be, and every value has to be the same.
 */
#ifndef SPTX_RECORD_WIDTH_H
#define SPTX_RECORD_WIDTH_H

enum {
    RECORD_ALIGN = 16, /* bytes: a field's columns begin at a multiple of it */
    RECORD_SPARE = 0   /* bytes behind a field's columns that nothing uses */
};

#endif
