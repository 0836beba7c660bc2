#include "directory_mark.h"

#include "directory.h"
#include "file.h"
#include "memory.h"
#include "report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HEAD = 256 }; /* buffer size: must exceed the length of every mark's text */

int directory_mark_make(const char *path, const struct directory_mark *mark) {
    char *file = file_join(path, mark->name);
    int result = file ? 0 : -1;
    if (!result && mkdir(path, 0777)) result = fail_system("make directory", path);
    if (!result) result = file_replace(file, mark->text, strlen(mark->text));
    free(file);
    return result;
}

static int has_text(const char *path, const struct directory_mark *mark) {
    char head[HEAD] = "", *file = file_join(path, mark->name);
    int kind = file ? file_head(file, head, sizeof head) : -1;
    free(file);
    return kind < 0 ? -1 : kind == 1 && !strcmp(head, mark->text);
}

static int is_just_made(const char *path, const struct directory_mark *mark) {
    char **names;
    int64_t count = directory_list(path, &names);
    int result = count < 0 ? -1 : 1;
    for (int64_t i = 0; i < count && result; i++) result = file_is_partial(names[i], mark->name);
    mem_free_texts(names, count);
    return result;
}

int directory_mark_is_there(const char *path, const struct directory_mark *mark) {
    if (!directory_is_plain(path)) return 0;
    int has = has_text(path, mark);
    return has ? has : is_just_made(path, mark);
}

/* Removes half-written mark files that a killed process left behind. */
static int remove_partials(const char *path, const struct directory_mark *mark) {
    char **names;
    int64_t count = directory_list(path, &names);
    int result = count < 0 ? -1 : 0;
    for (int64_t i = 0; i < count && !result; i++)
        if (file_is_partial(names[i], mark->name)) result = file_remove_in(path, names[i]);
    mem_free_texts(names, count);
    return result;
}

int directory_mark_remove(const char *path, const struct directory_mark *mark) {
    if (remove_partials(path, mark) || file_remove_in(path, mark->name)) return -1;
    if (!rmdir(path) || errno == ENOENT) return 0;
    if (errno != ENOTEMPTY && errno != EEXIST) return fail_system("remove", path);
    warn("'%s' stays, because it holds files that this program has not written", path);
    return 0;
}
