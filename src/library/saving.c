/* saving: writes a table to a file, while the caller waits or while it goes on. No two saves write one file at a time. */
#include "handles.h"

#include "base/memory.h"
#include "base/path.h"
#include "base/pool.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- files that are being written by this process ---- */

/* A file that is being written. Its directory is known by device and inode, since two paths may lead to one directory. */
struct written {
    dev_t device;
    ino_t directory;
    char *name; /* owned; NULL: the path's directory does not exist, and writing will fail */
    pid_t process; /* the process that writes it: a child made by fork() inherits its parent's list */
    struct written *next;
};

static pthread_mutex_t written_lock = PTHREAD_MUTEX_INITIALIZER;
static struct written *all_written;

static int name_file(struct written *file, const char *resolved, const char *directory) {
    const char *slash = strrchr(resolved, '/'), *name = slash ? slash + 1 : resolved;
    struct stat about;
    if (stat(directory, &about)) return 0;
    file->process = getpid();
    file->device = about.st_dev;
    file->directory = about.st_ino;
    file->name = mem_text(name, strlen(name), "a path");
    return file->name ? 0 : -1;
}

static int find_file(struct written *file, const char *path) {
    char *resolved = path_resolve(path), *directory = resolved ? path_parent(resolved) : NULL;
    *file = (struct written){.name = NULL};
    int result = directory ? name_file(file, resolved, directory) : -1;
    free(resolved);
    free(directory);
    return result;
}

static int is_same(const struct written *a, const struct written *b) {
    return a->process == b->process && a->device == b->device && a->directory == b->directory && !strcmp(a->name, b->name);
}

/* Claims the file of a path for one save. Returns 0, or -1 after fail(). */
static int claim_file(struct written *file, const char *path) {
    if (find_file(file, path)) return -1;
    if (!file->name) return 0;
    pthread_mutex_lock(&written_lock);
    const struct written *other = all_written;
    while (other && !is_same(other, file)) other = other->next;
    if (!other) {
        file->next = all_written;
        all_written = file;
    }
    pthread_mutex_unlock(&written_lock);
    if (!other) return 0;
    free(file->name);
    file->name = NULL;
    return fail("'%s' is being written by an earlier save, which is not done; wait for it, or save to another path", path);
}

static void release_file(struct written *file) {
    if (!file->name) return;
    pthread_mutex_lock(&written_lock);
    struct written **at = &all_written;
    while (*at != file) at = &(*at)->next;
    *at = file->next;
    pthread_mutex_unlock(&written_lock);
    free(file->name);
    file->name = NULL;
}

/* ---- a save ---- */

struct sptx_saving {
    struct behind behind;
    struct table snapshot; /* the table, whose rows are read as they were when the save began */
    char *path;
    struct written file;
    int owners; /* 1 for the caller and 1 for the table, until each releases the save. Atomic */
    int told;   /* 1: the caller has asked how the save ended. Atomic */
};

static void disown(struct sptx_saving *saving) {
    if (__atomic_sub_fetch(&saving->owners, 1, __ATOMIC_ACQ_REL)) return;
    behind_close(&saving->behind);
    free(saving->path);
    free(saving);
}

static int save_snapshot(void *user) {
    struct sptx_saving *saving = user;
    uint64_t checksum;
    int result = table_save(&saving->snapshot, saving->path, &checksum);
    saving->snapshot.ops->snapshot_stop(saving->snapshot.store);
    release_file(&saving->file);
    return result;
}

void saving_wait(struct sptx_table *table) {
    if (!table->saving) return;
    behind_wait(&table->saving->behind);
    table->table.ops->snapshot_end(table->table.backend, table->table.store);
}

void saving_look(struct sptx_table *table) {
    if (table->saving && behind_is_done(&table->saving->behind)) saving_wait(table);
}

void saving_forget(struct sptx_table *table) {
    saving_wait(table);
    if (table->saving) disown(table->saving);
    table->saving = NULL;
}

/* Waits for the table's earlier save. Fails with its sentence if that save failed and the caller has not asked how it ended. */
static int end_earlier(struct sptx_table *table) {
    struct sptx_saving *saving = table->saving;
    if (!saving) return 0;
    saving_wait(table);
    int result = __atomic_exchange_n(&saving->told, 1, __ATOMIC_ACQ_REL) ? 0 : behind_end(&saving->behind);
    saving_forget(table);
    return result;
}

static int check_path(const char *path) {
    return path && *path ? 0 : fail_usage("a table is saved to a path; none was given");
}

static int save_now(struct sptx_table *table, const char *path) {
    struct written file;
    uint64_t checksum;
    if (check_path(path) || claim_file(&file, path)) return -1;
    int result = end_earlier(table) || table->context->ops->rows_wait(table->context->backend) ? -1 : 0;
    if (!result) result = table_save(&table->table, path, &checksum);
    release_file(&file);
    return result;
}

enum sptx_status sptx_table_save(struct sptx_table *table, const char *path) {
    if (!table) return SPTX_USAGE;
    enter(table->context);
    return leave(table->context, save_now(table, path));
}

/* Begins a save whose file is claimed. */
static int begin_saving(struct sptx_table *table, struct sptx_saving *saving, uint64_t most) {
    struct table *own = &table->table;
    if (end_earlier(table) || own->ops->rows_wait(own->backend) || table_snapshot(own, most, &saving->snapshot)) return -1;
    saving->owners = 2;
    if (!behind_begin(&saving->behind, save_snapshot, saving)) return 0;
    own->ops->snapshot_end(own->backend, own->store);
    return -1;
}

/* Returns the path from the root: the program may change its working directory while the save goes on. */
static char *path_from_root(const char *path) {
    char *directory = *path == '/' ? NULL : getcwd(NULL, 0), *whole;
    if (!directory) return mem_text(path, strlen(path), "a path");
    uint64_t bytes = strlen(directory) + strlen(path) + 2;
    whole = mem_zalloc(bytes, 1, "a path");
    if (whole) snprintf(whole, bytes, "%s/%s", directory, path);
    free(directory);
    return whole;
}

static int save_behind(struct sptx_table *table, const char *path, uint64_t most, struct sptx_saving **out) {
    if (!out) return fail_usage("the address for the new save is NULL");
    *out = NULL;
    if (check_path(path)) return -1;
    struct sptx_saving *saving = mem_zalloc(1, sizeof *saving, "a save");
    if (!saving) return -1;
    saving->path = path_from_root(path);
    int claimed = saving->path && !claim_file(&saving->file, path);
    if (claimed && !begin_saving(table, saving, most)) {
        *out = table->saving = saving;
        return 0;
    }
    if (claimed) release_file(&saving->file);
    free(saving->path);
    free(saving);
    return -1;
}

enum sptx_status sptx_table_save_begin(struct sptx_table *table, const char *path, uint64_t most, struct sptx_saving **saving) {
    if (!table) return SPTX_USAGE;
    enter(table->context);
    return leave(table->context, save_behind(table, path, most, saving));
}

/* ---- the caller's handle ---- */

int sptx_saving_done(const struct sptx_saving *saving) {
    return !saving || behind_is_done(&saving->behind);
}

enum sptx_status sptx_saving_wait(struct sptx_saving *saving) {
    int code;
    if (!saving) return SPTX_USAGE;
    behind_sentence(&saving->behind, &code);
    __atomic_store_n(&saving->told, 1, __ATOMIC_RELEASE);
    return code ? SPTX_FAILED : SPTX_OK;
}

const char *sptx_saving_error(struct sptx_saving *saving) {
    int code;
    return saving ? behind_sentence(&saving->behind, &code) : "the save is NULL";
}

void sptx_saving_close(struct sptx_saving *saving) {
    if (saving) disown(saving);
}
