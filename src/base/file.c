#define _GNU_SOURCE
#include "file.h"

#include "memory.h"
#include "report.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int refuse(const char *doing, const char *path) {
    return fail("cannot %s '%s': %s", doing, path, strerror(errno));
}

int file_map_open(struct file_map *map, const char *path) {
    struct stat about;
    *map = (struct file_map){NULL, 0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return refuse("open", path);
    if (fstat(fd, &about)) {
        close(fd);
        return refuse("look at", path);
    }
    if (!S_ISREG(about.st_mode)) {
        close(fd);
        return fail("'%s' is not a plain file", path);
    }
    if (about.st_size > 0) {
        void *data = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_SHARED, fd, 0);
        if (data == MAP_FAILED) {
            close(fd);
            return refuse("map", path);
        }
        map->data = data;
        map->size = (uint64_t)about.st_size;
    }
    close(fd);
    return 0;
}

void file_map_close(struct file_map *map) {
    if (map->data) munmap((void *)map->data, map->size);
    *map = (struct file_map){NULL, 0};
}

char *file_read(const char *path, uint64_t *length) {
    struct file_map map;
    if (file_map_open(&map, path)) return NULL;
    char *text = mem_text(map.data ? map.data : "", map.size, path);
    if (text && length) *length = map.size;
    file_map_close(&map);
    return text;
}

char *file_join(const char *directory, const char *name) {
    size_t n = strlen(directory), m = strlen(name);
    int slash = n && directory[n - 1] != '/';
    char *path = mem_alloc(n + (size_t)slash + m + 1, 1, "a path");
    if (path) sprintf(path, "%s%s%s", directory, slash ? "/" : "", name);
    return path;
}

/* The directory that holds `path`, in memory that the caller frees. */
static char *parent(const char *path) {
    const char *slash = strrchr(path, '/');
    if (!slash) return mem_text(".", 1, "a path");
    return mem_text(path, slash == path ? 1 : (uint64_t)(slash - path), "a path");
}

int file_sync_directory(const char *path) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return refuse("open directory", path);
    int result = fsync(fd);
    close(fd);
    return result ? refuse("sync directory", path) : 0;
}

int file_rename(const char *from, const char *to) {
    if (rename(from, to)) return refuse("rename to", to);
    char *directory = parent(to);
    int result = directory ? file_sync_directory(directory) : -1;
    free(directory);
    return result;
}

/* ---- writing ---- */

/* The disk begins with what the system has so far: a large file is then nearly there when it is committed. A hint only,
 * whose failure says nothing. */
static void start_disk(struct file_writer *writer) {
    if (writer->sent - writer->started < DISK_PIECE) return;
    sync_file_range(writer->fd, (off_t)writer->started, (off_t)(writer->sent - writer->started), SYNC_FILE_RANGE_WRITE);
    writer->started = writer->sent;
}

static int write_out(struct file_writer *writer, const char *data, uint64_t length) {
    while (length) {
        ssize_t n = write(writer->fd, data, length > (1 << 30) ? 1 << 30 : length);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            writer->failed = 1;
            return refuse("write", writer->path);
        }
        data += n;
        length -= (uint64_t)n;
        writer->sent += (uint64_t)n;
    }
    start_disk(writer);
    return 0;
}

int file_writer_open(struct file_writer *writer, const char *path) {
    uint64_t n = strlen(path);
    *writer = (struct file_writer){.fd = -1};
    writer->path = mem_text(path, n, "a path");
    writer->partial = mem_alloc(n + sizeof ".partial", 1, "a path");
    writer->buffer = mem_alloc(FILE_BUFFER, 1, "a write buffer");
    if (!writer->path || !writer->partial || !writer->buffer) {
        file_abandon(writer);
        return -1;
    }
    sprintf(writer->partial, "%s.partial", path);
    writer->fd = open(writer->partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (writer->fd < 0) {
        refuse("write", path);
        file_abandon(writer);
        return -1;
    }
    return 0;
}

int file_write(struct file_writer *writer, const void *data, uint64_t length) {
    if (writer->failed) return -1;
    writer->written += length;
    if (length >= FILE_BUFFER - writer->used) {
        if (write_out(writer, writer->buffer, writer->used)) return -1;
        writer->used = 0;
        if (length >= FILE_BUFFER) return write_out(writer, data, length);
    }
    memcpy(writer->buffer + writer->used, data, length);
    writer->used += length;
    return 0;
}

int file_write_at(struct file_writer *writer, uint64_t offset, const void *data, uint64_t length) {
    const char *at = data;
    if (writer->failed || write_out(writer, writer->buffer, writer->used)) return -1;
    writer->used = 0;
    while (length) {
        ssize_t n = pwrite(writer->fd, at, length, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            writer->failed = 1;
            return refuse("write", writer->path);
        }
        at += n;
        offset += (uint64_t)n;
        length -= (uint64_t)n;
    }
    return 0;
}

int file_print(struct file_writer *writer, const char *format, ...) {
    char line[1024], *text = line;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (n >= (int)sizeof line) {
        va_start(args, format);
        if (vasprintf(&text, format, args) < 0) text = NULL;
        va_end(args);
    }
    if (n < 0 || !text) return fail("cannot format a line of '%s'", writer->path);
    int result = file_write(writer, text, (uint64_t)n);
    if (text != line) free(text);
    return result;
}

void file_abandon(struct file_writer *writer) {
    if (writer->fd >= 0 && writer->partial) {
        close(writer->fd);
        unlink(writer->partial);
    }
    free(writer->path);
    free(writer->partial);
    free(writer->buffer);
    *writer = (struct file_writer){.fd = -1};
}

int file_commit(struct file_writer *writer) {
    int result = writer->failed ? -1 : write_out(writer, writer->buffer, writer->used);
    if (!result && fsync(writer->fd)) result = refuse("sync", writer->path);
    if (!result) {
        int fd = writer->fd;
        writer->fd = -1;
        if (close(fd)) result = refuse("close", writer->path);
        if (!result) result = file_rename(writer->partial, writer->path);
        if (result) unlink(writer->partial);
    }
    file_abandon(writer);
    return result;
}

int file_replace(const char *path, const void *data, uint64_t length) {
    struct file_writer writer;
    if (file_writer_open(&writer, path)) return -1;
    if (file_write(&writer, data, length)) {
        file_abandon(&writer);
        return -1;
    }
    return file_commit(&writer);
}

int file_append(const char *path, const void *data, uint64_t length) {
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0) return refuse("write", path);
    ssize_t n = write(fd, data, length);
    int result = n == (ssize_t)length ? 0 : refuse("write", path);
    close(fd);
    return result;
}

/* ---- looking and removing ---- */

int file_exists(const char *path) {
    struct stat about;
    return !lstat(path, &about);
}

int file_is_directory(const char *path) {
    struct stat about;
    return !stat(path, &about) && S_ISDIR(about.st_mode);
}

int64_t file_size(const char *path) {
    struct stat about;
    if (stat(path, &about)) return refuse("look at", path);
    return (int64_t)about.st_size;
}

int file_make_directory(const char *path) {
    char *copy = mem_text(path, strlen(path), "a path");
    int result = 0;
    if (!copy) return -1;
    for (char *at = copy + 1; !result; at++) {
        char kept = *at;
        if (kept && kept != '/') continue;
        *at = 0;
        if (mkdir(copy, 0777) && errno != EEXIST) result = refuse("make directory", copy);
        *at = kept;
        if (!kept) break;
    }
    free(copy);
    if (!result && !file_is_directory(path)) return fail("'%s' is there and is not a directory", path);
    return result;
}

int file_remove(const char *path) {
    if (unlink(path) && errno != ENOENT) return refuse("remove", path);
    return 0;
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int64_t file_list(const char *path, char ***names) {
    struct dirent **entries;
    *names = NULL;
    int n = scandir(path, &entries, NULL, NULL);
    if (n < 0) return refuse("read directory", path);
    char **list = mem_zalloc((uint64_t)n + 1, sizeof *list, "a directory's names");
    int64_t kept = list ? 0 : -1;
    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name;
        if (kept >= 0 && strcmp(name, ".") && strcmp(name, "..")) {
            list[kept] = mem_text(name, strlen(name), "a directory's names");
            if (list[kept]) kept++;
            else kept = -1;
        }
        free(entries[i]);
    }
    free(entries);
    if (kept > 1) qsort(list, (size_t)kept, sizeof *list, by_bytes);
    *names = list;
    return kept;
}

int file_remove_tree(const char *path) {
    struct stat about;
    if (lstat(path, &about)) return errno == ENOENT ? 0 : refuse("look at", path);
    if (!S_ISDIR(about.st_mode)) return file_remove(path);
    char **names;
    int64_t n = file_list(path, &names);
    int result = n < 0 ? -1 : 0;
    for (int64_t i = 0; i < n; i++) {
        char *inner = file_join(path, names[i]);
        if (!inner || file_remove_tree(inner)) result = -1;
        free(inner);
        free(names[i]);
    }
    free(names);
    if (!result && rmdir(path)) result = refuse("remove directory", path);
    return result;
}
