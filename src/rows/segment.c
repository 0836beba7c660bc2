#define _GNU_SOURCE
#include "segment.h"

#include "base/interrupt.h"
#include "base/memory.h"
#include "base/report.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SHARED "/dev/shm"
#define MAGIC  0x31306765733A7873 /* "sx:seg01" */

enum {
    HUGE_PAGE = 2 << 20,
    PIECE = 64 << 20,    /* bytes that are allocated by one request, since a signal undoes a whole request */
    LOOK_MS = 100,       /* how often a waiting rank checks whether the others still live */
    SPINS = 4000,        /* number of checks without sleeping at the beginning of a wait: a sleep takes longer than most waits */
    REMIND_SECONDS = 10, /* after this time a waiting rank says which rank has not opened the segment yet */
    COME_SECONDS = 600,  /* how long it waits for that rank */
    LEAVE_SECONDS = 10   /* how long a rank waits for the processes of an earlier, failed start to end */
};

struct segment_slot {
    int32_t pid;     /* 0: the rank has not come yet */
    uint32_t closed; /* 1: the rank has closed the segment. Atomic */
    uint64_t start;  /* when the process began (process_start()) */
    struct segment_call call[2];
    char said[2][SEGMENT_SENTENCE]; /* the message with which the rank fails; "": it does not fail */
};

struct segment_header {
    uint64_t magic; /* MAGIC, written last */
    uint32_t ranks;
    uint32_t broken; /* 1: a rank is writing `sentence`; 2: all waits fail with `sentence`. Atomic */
    uint32_t generation, arrived; /* the barrier: number of finished waits; number of ranks that have come to the next wait. Atomic */
    char about[SEGMENT_ABOUT], sentence[SEGMENT_SENTENCE];
    struct segment_slot slot[]; /* [ranks]; then the counts: uint64_t [ranks x ranks] */
};

static uint64_t round_to(uint64_t bytes, uint64_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

static uint64_t header_bytes(uint32_t ranks) {
    return sizeof(struct segment_header) + ranks * sizeof(struct segment_slot) + (uint64_t)ranks * ranks * sizeof(uint64_t);
}

static uint64_t rows_at(const struct segment *s) {
    return round_to(header_bytes(s->ranks), HUGE_PAGE);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void sleep_ms(long ms) {
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* Returns the time when a process began, in the kernel's ticks; 0 if the process has ended, even if its parent has not asked for its status yet. */
static uint64_t process_start(int32_t pid) {
    char path[32], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    if (n <= 0) return kill(pid, 0) && errno == ESRCH ? 0 : 1; /* no /proc: the id alone tells */
    text[n] = '\0';
    char *field = strrchr(text, ')'); /* finds the end of the second field, the program's name, which may contain any character */
    if (!field || strchr("ZXx", field[2])) return 0;
    for (int i = 2; i < 22 && field; i++) field = strchr(field + 1, ' ');
    return field ? strtoull(field, NULL, 10) : 0;
}

static int lives(const struct segment_slot *slot) {
    return process_start(slot->pid) == slot->start;
}

/* ---- failing together ---- */

int segment_break(struct segment *s) {
    struct segment_header *h = s->header;
    uint32_t whole = 0;
    if (__atomic_compare_exchange_n(&h->broken, &whole, 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        snprintf(h->sentence, sizeof h->sentence, "rank %u (process %d) of the shared table '%s' failed: %s", s->rank, (int)getpid(), s->name,
                 report_sentence());
        __atomic_store_n(&h->broken, 2, __ATOMIC_SEQ_CST);
    }
    syscall(SYS_futex, &h->generation, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
    return -1;
}

static int fail_if_broken(const struct segment *s) {
    uint32_t broken = __atomic_load_n(&s->header->broken, __ATOMIC_SEQ_CST);
    if (!broken) return 0;
    for (int i = 0; i < 100 && broken == 1; i++) {
        sleep_ms(1);
        broken = __atomic_load_n(&s->header->broken, __ATOMIC_SEQ_CST);
    }
    return fail("%s", broken == 2 ? s->header->sentence : "another rank of the shared table failed");
}

/* ---- waiting ---- */

static int has_passed(const struct segment *s, uint32_t generation) {
    return __atomic_load_n(&s->header->generation, __ATOMIC_SEQ_CST) != generation;
}

/* Checks whether waiting is useless because a rank is missing. began: when the wait began; *reminded: 1 if the caller was told already which rank
 * is awaited. */
static int look_after_others(struct segment *s, uint32_t generation, double began, int *reminded) {
    for (uint32_t r = 0; r < s->ranks; r++) {
        const struct segment_slot *slot = &s->header->slot[r];
        int32_t pid = __atomic_load_n(&slot->pid, __ATOMIC_SEQ_CST);
        double waited = seconds() - began;
        if (r == s->rank) continue;
        if (!pid && waited > COME_SECONDS)
            return fail("rank %u of %u has not opened the shared table '%s' for %d seconds", r, s->ranks, s->name, COME_SECONDS);
        if (!pid && waited > REMIND_SECONDS && !*reminded) {
            warn("rank %u waits until rank %u of %u opens the shared table '%s', too", s->rank, r, s->ranks, s->name);
            *reminded = 1;
        }
        int closed = pid && __atomic_load_n(&slot->closed, __ATOMIC_SEQ_CST);
        if (!pid || (!closed && lives(slot)) || has_passed(s, generation)) continue;
        if (fail_if_broken(s)) return -1; /* the rank may have ended because another one failed */
        return fail(closed ? "rank %u (process %d) has closed the shared table '%s', and rank %u waits for it"
                           : "rank %u (process %d) of the shared table '%s' has died, and rank %u waits for it",
                    r, pid, s->name, s->rank);
    }
    return 0;
}

int segment_wait(struct segment *s) {
    struct segment_header *h = s->header;
    uint32_t generation = __atomic_load_n(&h->generation, __ATOMIC_SEQ_CST);
    struct timespec pause = {.tv_nsec = LOOK_MS * 1000000};
    double began = seconds(), looked = began;
    int reminded = 0;
    if (fail_if_broken(s)) return -1;
    if (__atomic_add_fetch(&h->arrived, 1, __ATOMIC_SEQ_CST) == s->ranks) {
        __atomic_store_n(&h->arrived, 0, __ATOMIC_SEQ_CST);
        __atomic_add_fetch(&h->generation, 1, __ATOMIC_SEQ_CST);
        syscall(SYS_futex, &h->generation, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
        return 0;
    }
    for (int i = 0; i < SPINS; i++)
        if (has_passed(s, generation)) return 0;
    while (!has_passed(s, generation)) {
        if (fail_if_broken(s)) return -1;
        if (interrupt_asked()) {
            fail_stopped("stopped while rank %u waited for the other ranks of the shared table '%s'", s->rank, s->name);
            return segment_break(s);
        }
        if (seconds() - looked > 1e-3 * LOOK_MS) {
            if (look_after_others(s, generation, began, &reminded)) return segment_break(s);
            looked = seconds();
        }
        syscall(SYS_futex, &h->generation, FUTEX_WAIT, generation, &pause, NULL, 0);
    }
    return 0;
}

int segment_agree(struct segment *s, int failed, const struct segment_call *call) {
    /* The number of waits cannot change before this rank has come. No rank writes the set of a wait again before all ranks have come to the next
     * wait. */
    unsigned set = __atomic_load_n(&s->header->generation, __ATOMIC_SEQ_CST) & 1;
    struct segment_slot *own = &s->header->slot[s->rank];
    own->call[set] = call ? *call : (struct segment_call){0};
    snprintf(own->said[set], sizeof own->said[set], "%s", failed ? report_sentence() : "");
    if (segment_wait(s)) return -1;
    s->told = set;
    for (uint32_t r = 0; r < s->ranks && !failed; r++) {
        const struct segment_slot *slot = &s->header->slot[r];
        if (slot->said[set][0]) return fail("rank %u (process %d) of the shared table '%s' was refused: %s", r, slot->pid, s->name, slot->said[set]);
    }
    return failed ? -1 : 0;
}

const struct segment_call *segment_call_of(const struct segment *s, uint32_t rank) {
    return &s->header->slot[rank].call[s->told];
}

uint64_t *segment_counts(struct segment *s) {
    return (uint64_t *)(void *)(s->header->slot + s->ranks);
}

/* ---- memory ---- */

/* Gives the file memory for the bytes from .. end - 1, so that no later access to them fails. */
static int allocate(const struct segment *s, int fd, uint64_t from, uint64_t end) {
    char text[32];
    for (uint64_t at = from; at < end;) {
        uint64_t piece = end - at < PIECE ? end - at : PIECE;
        int error = posix_fallocate(fd, (off_t)at, (off_t)piece);
        if (error && error != EINTR)
            return fail("cannot allocate %s of " SHARED " for the shared table '%s': %s", text_of_bytes(text, end - from), s->name, strerror(error));
        if (!error) at += piece;
        if (interrupt_asked()) return fail_stopped("stopped while memory was allocated for the shared table '%s'", s->name);
    }
    return 0;
}

static void *map(const struct segment *s, int fd, uint64_t at, uint64_t bytes) {
    void *got = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)at);
    if (got != MAP_FAILED) return got;
    fail("cannot map %" PRIu64 " bytes of the shared table '%s': %s", bytes, s->name, strerror(errno));
    return NULL;
}

int segment_mail(struct segment *s, uint64_t bytes) {
    uint64_t at = rows_at(s) + round_to(s->bytes, HUGE_PAGE), grown = round_to(bytes + bytes / 4, HUGE_PAGE);
    if (bytes <= s->mail_bytes) return 0;
    if (segment_agree(s, s->rank == 0 && allocate(s, s->fd, at + s->mail_bytes, at + grown), NULL)) return -1;
    if (s->mail) munmap(s->mail, s->mail_bytes);
    s->mail_bytes = 0;
    s->mail = map(s, s->fd, at, grown);
    if (!s->mail) return segment_break(s);
    s->mail_bytes = grown;
    return 0;
}

/* ---- opening ---- */

/* Fails, before anything is written, if the machine has too little memory. */
static int check_room(const struct segment *s) {
    char wanted[32], left[32];
    struct statvfs about;
    uint64_t need = rows_at(s) + s->bytes, room = statvfs(SHARED, &about) ? 0 : (uint64_t)about.f_bavail * about.f_frsize, memory = mem_available();
    if (room && memory && memory < room) room = memory;
    if (need <= room) return 0;
    return fail("the shared table '%s' needs %s in " SHARED ", of which %s are free (mount -o remount,size= " SHARED " gives it more; of a container "
                "--shm-size)", s->name, text_of_bytes(wanted, need), text_of_bytes(left, room));
}

static int make_header(struct segment *s, int fd, const char *about) {
    uint64_t bytes = header_bytes(s->ranks);
    if (check_room(s) || allocate(s, fd, 0, bytes) || !(s->header = map(s, fd, 0, bytes))) return -1;
    s->header->ranks = s->ranks;
    snprintf(s->header->about, sizeof s->header->about, "%s", about);
    __atomic_store_n(&s->header->magic, MAGIC, __ATOMIC_SEQ_CST);
    return 0;
}

/* Fails with a message that names the first word in which this rank's text differs from the text of the rank that made the segment. */
static int fail_different(const struct segment *s, const char *theirs, const char *ours, int32_t pid) {
    size_t at = 0, word = 0;
    for (; theirs[at] && theirs[at] == ours[at]; at++)
        if (theirs[at] == ' ') word = at + 1;
    return fail_usage("the ranks of the shared table '%s' want different ones: process %d %.*s, and rank %u (process %d) %.*s", s->name, pid,
                      (int)strcspn(theirs + word, " "), theirs + word, s->rank, (int)getpid(), (int)strcspn(ours + word, " "), ours + word);
}

enum { JOINED, AGAIN }; /* results of join() in addition to -1. AGAIN: the file is gone, or processes of an earlier start still use it */

/* Takes this rank's slot in a header that another process made. */
static int take_slot(struct segment *s, int fd, const char *about) {
    struct segment_header head;
    ssize_t n = pread(fd, &head, sizeof head, 0);
    if (n == (ssize_t)sizeof head && head.magic && (head.magic != MAGIC || !head.ranks || head.ranks > SEGMENT_RANKS))
        return fail("'%s' is no shared table of this version of sptx; remove it", s->path);
    uint64_t bytes = n == (ssize_t)sizeof head && head.magic ? header_bytes(head.ranks) : 0;
    if (bytes && !(s->header = map(s, fd, 0, bytes))) return -1;
    int32_t living = 0;
    int ending = bytes && s->header->broken;
    for (uint32_t r = 0; bytes && r < head.ranks; r++) {
        const struct segment_slot *slot = &s->header->slot[r];
        if (!slot->pid) continue;
        if (slot->closed || !lives(slot)) ending = 1;
        else if (!living) living = slot->pid;
    }
    int result = AGAIN;
    if (!living) unlink(s->path); /* a kill has left it */
    else if (!ending && strcmp(s->header->about, about)) result = fail_different(s, s->header->about, about, living);
    else if (!ending && s->header->slot[s->rank].pid)
        result = fail_usage("rank %u of the shared table '%s' is process %d already", s->rank, s->name, s->header->slot[s->rank].pid);
    else if (!ending) return JOINED;
    if (bytes) munmap(s->header, bytes);
    s->header = NULL;
    return result;
}

/* Makes the file, or joins it; only one process does so at a time. */
static int join(struct segment *s, const char *about) {
    struct stat own, named;
    int result = AGAIN, fd = open(s->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return fail_system("open", s->path);
    if (!flock(fd, LOCK_EX | LOCK_NB) && !fstat(fd, &own) && !stat(s->path, &named) && own.st_ino == named.st_ino) {
        result = own.st_uid != geteuid() ? fail("'%s' belongs to another user", s->path)
                 : own.st_size           ? take_slot(s, fd, about)
                                         : make_header(s, fd, about);
        if (result < 0 && !own.st_size) unlink(s->path);
    }
    if (result != JOINED) {
        close(fd);
        return result;
    }
    struct segment_slot *slot = &s->header->slot[s->rank];
    slot->start = process_start(getpid());
    __atomic_store_n(&slot->pid, (int32_t)getpid(), __ATOMIC_SEQ_CST);
    uint32_t come = 0;
    for (uint32_t r = 0; r < s->ranks; r++) come += s->header->slot[r].pid != 0;
    if (come == s->ranks) unlink(s->path); /* without the file's name, the next process that opens this name begins another segment */
    flock(fd, LOCK_UN);
    s->fd = fd;
    return JOINED;
}

int segment_open(struct segment *s, const char *name, uint32_t rank, uint32_t ranks, uint64_t bytes, const char *about) {
    const char *letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    double began = seconds();
    char path[SEGMENT_NAME + 64];
    int result;
    *s = (struct segment){0};
    if (!*name || strlen(name) > SEGMENT_NAME || name[strspn(name, letters)])
        return fail_usage("shared = '%.*s' is no name of 1 to %d letters, digits, '.', '_' and '-'", SEGMENT_NAME, name, SEGMENT_NAME);
    if (!ranks || ranks > SEGMENT_RANKS || rank >= ranks)
        return fail_usage("rank = %u of ranks = %u: ranks are 1 to %d, and rank is below them", rank, ranks, SEGMENT_RANKS);
    *s = (struct segment){.rank = rank, .ranks = ranks, .bytes = bytes, .fd = -1};
    snprintf(path, sizeof path, SHARED "/sptx-%u-%s", (unsigned)geteuid(), name);
    if (!(s->path = mem_text(path, strlen(path), "a path"))) {
        segment_close(s);
        return -1;
    }
    s->name = s->path + strlen(path) - strlen(name);
    while ((result = join(s, about)) == AGAIN) {
        if (seconds() - began > LEAVE_SECONDS) result = fail("'%s' is of a start that has failed, and its processes do not end", s->path);
        else if (interrupt_asked()) result = fail_stopped("stopped while the shared table '%s' was opened", s->name);
        if (result < 0) break;
        sleep_ms(20);
    }
    uint64_t share = round_to(bytes / ranks + 1, HUGE_PAGE), first = rank * share < bytes ? rank * share : bytes;
    uint64_t end = first + share < bytes ? first + share : bytes;
    if (result != JOINED || segment_wait(s) || !(s->rows = map(s, s->fd, rows_at(s), bytes)) ||
        segment_agree(s, allocate(s, s->fd, rows_at(s) + first, rows_at(s) + end), NULL)) {
        segment_close(s);
        return -1;
    }
    return 0;
}

void segment_close(struct segment *s) {
    struct stat own, named;
    if (s->header && s->fd >= 0) {
        __atomic_store_n(&s->header->slot[s->rank].closed, 1, __ATOMIC_SEQ_CST);
        syscall(SYS_futex, &s->header->generation, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
        if (!fstat(s->fd, &own) && !stat(s->path, &named) && own.st_ino == named.st_ino) unlink(s->path); /* not all ranks came */
    }
    if (s->rows) munmap(s->rows, s->bytes);
    if (s->mail) munmap(s->mail, s->mail_bytes);
    if (s->header) munmap(s->header, header_bytes(s->ranks));
    if (s->path && s->fd >= 0) close(s->fd);
    free(s->path);
    *s = (struct segment){0};
}
