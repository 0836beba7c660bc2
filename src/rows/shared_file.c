#include "shared_file.h"

#include "base/retry.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

/* The first rank's file, as it describes the file to the other ranks. */
struct notice {
    char name[4096]; /* path of the file; "": the path is too long to send */
    uint64_t number; /* rank r writes this number + r */
};

/* A rank's search for the file: its arguments and its result. */
struct probe {
    struct ranks *ranks;
    struct file_part *part;
    const char *path;
    struct notice notice;
    uint64_t at;
};

/* Writes this rank's number into the file. Returns 1 if this rank does not see the file. */
static int write_number(void *user) {
    struct probe *p = user;
    uint64_t number = p->notice.number + p->ranks->number, at = p->at + p->ranks->number * sizeof number;
    if (!*p->notice.name) return 1;
    if (!ranks_first(p->ranks) && file_part_join(p->part, p->path, p->notice.name)) return 1;
    return retry_write_at(p->part->fd, &number, sizeof number, at) || retry_sync(p->part->fd) ? 1 : 0;
}

/* Reads all ranks' numbers. Returns 1 if one is missing. */
static int read_numbers(void *user) {
    struct probe *p = user;
    uint64_t number;
    int fd = retry_open(p->notice.name, O_RDONLY | O_CLOEXEC), missing = fd < 0;
    for (unsigned r = 0; r < p->ranks->count && !missing; r++)
        missing = retry_read_at(fd, &number, sizeof number, p->at + r * sizeof number) != sizeof number ||
                  number != p->notice.number + r;
    if (fd >= 0) close(fd);
    return missing;
}

/* The number is a hash of the file's name. No other process has a file of this name, so the number is unique, too. */
static void describe(struct notice *notice, const char *name) {
    *notice = (struct notice){.number = XXH3_64bits(name, strlen(name))};
    if (strlen(name) < sizeof notice->name) strcpy(notice->name, name);
}

unsigned shared_file_join(struct file_part *part, struct ranks *ranks, const struct file_writer *writer, const char *path,
                          uint64_t at) {
    struct probe p = {.ranks = ranks, .part = part, .path = path, .at = at};
    *part = (struct file_part){path, -1};
    if (ranks_meet(ranks, NULL, writer ? file_part_of(part, writer) : 0)) return 0;
    if (ranks_count(ranks) == 1) return 1;
    if (writer) describe(&p.notice, writer->partial);
    ranks_share(ranks, &p.notice, sizeof p.notice);
    int alone = ranks_do(ranks, write_number, &p);
    if (!alone) alone = ranks_do(ranks, writer ? read_numbers : NULL, &p);
    if (alone && !writer) file_part_close(part); /* not shared: this rank may have opened another process's file */
    return alone < 0 ? 0 : alone ? 1 : ranks->count;
}

/* The numbers that identify a file on a machine. */
struct identity {
    uint64_t inode, bytes;
    int64_t seconds, nanoseconds; /* time of the last write */
};

unsigned shared_file_readers(struct ranks *ranks, const char *path) {
    struct identity own = {0}, first;
    struct stat about;
    if (ranks_count(ranks) == 1) return 1;
    if (ranks_meet(ranks, NULL, 0)) return 0;
    if (!stat(path, &about))
        own = (struct identity){(uint64_t)about.st_ino, (uint64_t)about.st_size, about.st_mtim.tv_sec, about.st_mtim.tv_nsec};
    first = own;
    ranks_share(ranks, &first, sizeof first);
    return ranks_any(ranks, memcmp(&own, &first, sizeof own) ? 1 : 0) ? 1 : ranks->count;
}
