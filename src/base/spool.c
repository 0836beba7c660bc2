#include "spool.h"

#include "file.h"
#include "interrupt.h"
#include "memory.h"
#include "report.h"
#include "retry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 1 << 20 };

/* Reads the next bytes into `piece`. Returns their number, 0 at the end, -1 after fail(). */
static int64_t read_piece(int from, char *piece, const char *what) {
    ssize_t n;
    do n = read(from, piece, PIECE);
    while (n < 0 && errno == EINTR && !interrupt_check());
    return n < 0 ? fail("cannot read %s: %s", what, strerror(errno)) : n;
}

static int copy(int from, int to, const char *directory, const char *what) {
    char *piece = mem_alloc(PIECE, 1, "reading");
    int64_t n = piece ? 1 : -1;
    for (uint64_t at = 0; n > 0; at += (uint64_t)n) {
        n = interrupt_check() ? -1 : read_piece(from, piece, what);
        if (n > 0 && retry_write_at(to, piece, (uint64_t)n, at))
            n = fail("cannot keep %s in '%s': %s; TMPDIR names another directory", what, directory, strerror(errno));
    }
    free(piece);
    return n < 0 ? -1 : 0;
}

const char *spool_directory(void) {
    const char *named = getenv("TMPDIR");
    return named && *named ? named : "/var/tmp";
}

int spool_open(void) {
    char *path = file_join(spool_directory(), "sptx-spool");
    int fd = path ? file_open_unnamed(path) : -1;
    free(path);
    return fd;
}

int spool_all(int from, const char *what) {
    int to = spool_open();
    if (to < 0 || !copy(from, to, spool_directory(), what)) return to;
    close(to);
    return -1;
}
