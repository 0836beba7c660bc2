#include "page_files.h"

#include "base/report.h"

#include <string.h>

/* Makes the assembler include a file's bytes and a NUL between the symbols FILE_BEGIN and FILE_END. Its path is relative to the
 * top of the tree, where make runs. */
#define CARRY(name, file)                                                                                              \
    __asm__(".section .rodata\n"                                                                                       \
            ".hidden " #name "_begin\n.global " #name "_begin\n" #name "_begin:\n"                                     \
            ".incbin \"src/vectors/page/" file "\"\n"                                                                  \
            ".hidden " #name "_end\n.global " #name "_end\n" #name "_end:\n"                                           \
            ".byte 0\n"                                                                                                \
            ".previous\n");                                                                                            \
    extern const char name##_begin[], name##_end[]

CARRY(page_html, "page.html");
CARRY(page_css, "page.css");
CARRY(page_data, "data.js");
CARRY(page_charts, "charts.js");
CARRY(page_map, "map.js");
CARRY(page_search, "search.js");
CARRY(page_main, "main.js");

static const struct {
    const char *name, *begin, *end;
} files[] = {{"page.css", page_css_begin, page_css_end},        {"data.js", page_data_begin, page_data_end},
             {"charts.js", page_charts_begin, page_charts_end}, {"map.js", page_map_begin, page_map_end},
             {"search.js", page_search_begin, page_search_end}, {"main.js", page_main_begin, page_main_end}};

static int find_part(const struct page_part *parts, const char *name, uint64_t length, struct page_part *found) {
    for (uint64_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strlen(files[i].name) == length && !memcmp(files[i].name, name, length)) {
            *found = (struct page_part){files[i].name, files[i].begin, (uint64_t)(files[i].end - files[i].begin)};
            return 0;
        }
    for (; parts->name; parts++)
        if (strlen(parts->name) == length && !memcmp(parts->name, name, length)) {
            *found = *parts;
            return 0;
        }
    return fail("nothing stands for {{%.*s}} in page.html", (int)length, name);
}

/* Gives the next stretch of the page: text before a {{name}}, or the text that replaces a {{name}}. Returns 1; 0 at the end; -1
 * after fail(). */
static int next(const struct page_part *parts, const char **at, struct page_part *piece) {
    const char *end = page_html_end;
    if (*at == end) return 0;
    const char *place = strstr(*at, "{{");
    if (place != *at) {
        *piece = (struct page_part){"page.html", *at, (uint64_t)((place ? place : end) - *at)};
        *at += piece->length;
        return 1;
    }
    const char *close = strstr(place, "}}");
    if (!close) return fail("page.html has a {{ without its }}");
    *at = close + 2;
    return find_part(parts, place + 2, (uint64_t)(close - place - 2), piece) ? -1 : 1;
}

uint64_t page_files_bytes(const struct page_part *parts) {
    const char *at = page_html_begin;
    struct page_part piece = {0};
    uint64_t bytes = 0;
    int more;
    while ((more = next(parts, &at, &piece)) > 0) bytes += piece.length;
    return more ? 0 : bytes;
}

int page_files_write(const struct page_part *parts, struct file_writer *writer) {
    const char *at = page_html_begin;
    struct page_part piece = {0};
    int more;
    while ((more = next(parts, &at, &piece)) > 0)
        if (file_write(writer, piece.text, piece.length)) return -1;
    return more;
}
