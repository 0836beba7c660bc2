/* page_files: the files of src/vectors/page, which are built into the program. page.html contains places {{name}}; the other
 * files, and texts of the caller, fill them. */
#ifndef SPTX_PAGE_FILES_H
#define SPTX_PAGE_FILES_H

#include "base/file.h"

/* A text that replaces {{name}} in page.html. A place with the name of another file of the page, such as {{page.css}}, is
 * replaced by that file. */
struct page_part {
    const char *name; /* name without the braces; NULL: the end of a list of texts */
    const char *text;
    uint64_t length;
};

/* Returns the number of bytes of the filled page; 0 after fail(), which names a place that nothing fills. */
uint64_t page_files_bytes(const struct page_part *parts);
int page_files_write(const struct page_part *parts, struct file_writer *writer);

#endif
