#include "labels.h"

#include <stdlib.h>
#include <string.h>

static int is_label(const struct token *token) {
    static const char *const others[] = {"train", "val", "test", "-"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strlen(others[i]) == token->length && !memcmp(others[i], token->text, token->length)) return 0;
    return 1;
}

int labels_read(const char *path, labels_take *take, void *user) {
    struct lines lines;
    struct token name, label;
    int result = 0;
    char *text = lines_open(&lines, path);
    while (text && !result && lines_next(&lines))
        if (lines_token(&lines, &name))
            while (!result && lines_token(&lines, &label))
                if (is_label(&label)) result = take(user, &name, &label);
    free(text);
    return text ? result : -1;
}
