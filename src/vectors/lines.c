#include "lines.h"

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "corpus/kind.h"

#include <stdlib.h>

int lines_next(struct lines *lines) {
    if (lines->at == lines->end) return 0;
    char *stop = lines->at;
    while (stop < lines->end && *stop != '\n' && *stop != '\r') stop++;
    lines->line = lines->at;
    lines->stop = stop;
    if (stop < lines->end) stop += stop + 1 < lines->end && stop[0] == '\r' && stop[1] == '\n' ? 2 : 1;
    lines->at = stop;
    lines->number++;
    return 1;
}

int lines_token(struct lines *lines, struct token *token) {
    while (lines->line < lines->stop && text_is_blank(*lines->line)) lines->line++;
    token->text = lines->line;
    while (lines->line < lines->stop && !text_is_blank(*lines->line)) lines->line++;
    token->length = (uint64_t)(lines->line - token->text);
    return token->length > 0;
}

char *lines_open(struct lines *lines, const char *path) {
    uint64_t length = 0;
    char *text = file_read_given(path, mem_available(), &length);
    if (!text || kind_check_format(path, text, length, 0)) {
        free(text);
        return NULL;
    }
    *lines = (struct lines){.at = text + text_mark(text, length), .end = text + length};
    return text;
}
