#include "path.h"

#include "memory.h"
#include "report.h"

#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { LINKS_MOST = 40 }; /* the same limit as Linux has */

/* State of resolving one path. */
struct walk {
    const char *path; /* as the caller gave it, for messages */
    char *done;       /* the resolved beginning of the path; "": the working directory; NULL before the first call of put_bytes() */
    uint64_t length, capacity;
    uint64_t missing; /* number of parts at the end of `done` that do not exist */
    unsigned links;   /* number of links followed so far */
    int is_directory; /* 1: `done` is a directory */
};

static int walk(struct walk *walk, const char *rest);

static int refuse(const struct walk *w) {
    return fail_system("look at", w->path);
}

static int put_bytes(struct walk *w, const char *bytes, uint64_t length) {
    if (mem_grow(&w->done, &w->capacity, w->length + length + 1, 1, "a path")) return -1;
    memcpy(w->done + w->length, bytes, length);
    w->length += length;
    w->done[w->length] = 0;
    return 0;
}

static int put_part(struct walk *w, const char *name, uint64_t length) {
    int slash = w->length && w->done[w->length - 1] != '/';
    return (slash && put_bytes(w, "/", 1)) || put_bytes(w, name, length) ? -1 : 0;
}

/* Returns the index in `done` at which its last part begins. */
static uint64_t last_part(const struct walk *w) {
    uint64_t at = w->length;
    while (at && w->done[at - 1] != '/') at--;
    return at;
}

static void drop_part(struct walk *w) {
    uint64_t at = last_part(w);
    w->length = at > 1 ? at - 1 : at; /* "/" itself keeps its slash */
    w->done[w->length] = 0;
}

static int go_up(struct walk *w) {
    if (w->missing) {
        w->missing--;
        drop_part(w);
        return 0;
    }
    if (!w->is_directory) {
        errno = ENOTDIR;
        return refuse(w);
    }
    if (w->length == 1 && *w->done == '/') return 0;
    if (!w->length || !strcmp(w->done + last_part(w), "..")) return put_part(w, "..", 2);
    drop_part(w);
    return 0;
}

/* Returns 1 for a link in /proc: it refers to an open file, and its text is not a path. */
static int is_of_proc(const char *link) {
    char *directory = path_parent(link);
    struct statfs about;
    int result = directory && !statfs(directory, &about) && about.f_type == PROC_SUPER_MAGIC;
    free(directory);
    return result;
}

/* Replaces the link at the end of `done`, whose name begins at byte `start`, by the path that it points to. */
static int follow(struct walk *w, uint64_t start) {
    char target[PATH_MAX];
    ssize_t n = readlink(w->done, target, sizeof target - 1);
    if (n < 0) return refuse(w);
    target[n] = 0;
    if (++w->links > LINKS_MOST) {
        errno = ELOOP;
        return refuse(w);
    }
    w->length = *target == '/' ? 0 : start;
    w->done[w->length] = 0;
    w->is_directory = 1;
    return walk(w, target);
}

static int go_down(struct walk *w, const char *name, uint64_t length) {
    struct stat about;
    uint64_t start = w->length;
    if (put_part(w, name, length)) return -1;
    if (w->missing) {
        w->missing++;
        return 0;
    }
    if (lstat(w->done, &about)) {
        if (errno != ENOENT && errno != ENOTDIR) return refuse(w);
        w->missing = 1;
        return 0;
    }
    w->is_directory = S_ISDIR(about.st_mode);
    if (!S_ISLNK(about.st_mode) || is_of_proc(w->done)) return 0;
    return follow(w, start);
}

static int walk(struct walk *w, const char *rest) {
    if (*rest == '/' && !w->length && put_bytes(w, "/", 1)) return -1;
    while (*rest) {
        uint64_t length = strcspn(rest, "/");
        int up = length == 2 && !memcmp(rest, "..", 2), stay = !length || (length == 1 && *rest == '.');
        if (!stay && (up ? go_up(w) : go_down(w, rest, length))) return -1;
        rest += length + (rest[length] == '/');
    }
    return 0;
}

char *path_resolve(const char *path) {
    struct walk w = {.path = path, .is_directory = 1};
    if (!*path) {
        fail("a path is empty");
        return NULL;
    }
    if (put_bytes(&w, "", 0) || walk(&w, path) || (!w.length && put_bytes(&w, ".", 1))) {
        free(w.done);
        return NULL;
    }
    return w.done;
}

char *path_parent(const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash) return mem_text(".", 1, "a path");
    return mem_text(path, slash == path ? 1 : (uint64_t)(slash - path), "a path");
}

char *path_of_program(void) {
    enum { LONGEST = 4096 };
    char *own = mem_zalloc(LONGEST, 1, "the path of the program");
    if (own && readlink("/proc/self/exe", own, LONGEST - 1) < 0) {
        fail_system("read", "/proc/self/exe");
        free(own);
        return NULL;
    }
    return own;
}
