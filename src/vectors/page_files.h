/* page_files: the files of src/vectors/page, which the program carries inside: a page of HTML with places to fill, and
 * files that fill some of them. */
#ifndef SPTX_PAGE_FILES_H
#define SPTX_PAGE_FILES_H

#include "base/file.h"

/* The text that takes the place of {{name}} in page.html. The page's other files have their own names
 * ({{page.css}}). */
struct page_part {
    const char *name; /* NULL ends a list */
    const char *text;
    uint64_t length;
};

/* Returns the bytes of the page with all places filled; 0 after fail(), which names a place that nothing fills. */
uint64_t page_files_bytes(const struct page_part *parts);
int page_files_write(const struct page_part *parts, struct file_writer *writer);

#endif
