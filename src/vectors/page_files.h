/* page_files: the files of src/vectors/page as the program carries them: a page of HTML with places to fill, and what
 * fills some of these. */
#ifndef SPTX_PAGE_FILES_H
#define SPTX_PAGE_FILES_H

#include "base/file.h"

/* What {{name}} stands for in page.html, beside the page's other files, which go by their own names ({{page.css}}). */
struct page_part {
    const char *name; /* NULL ends a list */
    const char *text;
    uint64_t length;
};

/* Bytes of the page with all in its place; 0 after fail(): it names what nothing stands for. */
uint64_t page_files_bytes(const struct page_part *parts);
int page_files_write(const struct page_part *parts, struct file_writer *writer);

#endif
