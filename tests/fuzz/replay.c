/* replay: runs a fuzz target over files, and over the files of directories, as libFuzzer does if it does not fuzz. */
#include "base/file.h"
#include "base/report.h"
#include "tests/fuzz/fuzz.h"

static int run_file(const char *path) {
    uint64_t length;
    char *text = file_read(path, &length);
    if (!text) return -1;
    uint8_t *bytes = malloc(length ? length : 1); /* exactly as long as the file, so that a sanitizer notices reads past its end */
    memcpy(bytes, text, length);
    free(text);
    fprintf(stderr, "%s\n", path); /* if a run fails, the path printed last is that of its file */
    LLVMFuzzerTestOneInput(bytes, length);
    free(bytes);
    return 1;
}

/* Returns the number of files that were run, or -1. */
static int run_path(const char *path) {
    char **names;
    int total = 0;
    int inside = directory_exists(path);
    if (inside < 1) return inside ? -1 : run_file(path);
    int64_t count = directory_list(path, &names);
    for (int64_t i = 0; i < count; i++) {
        char *inner = file_join(path, names[i]);
        int done = inner && total >= 0 ? run_file(inner) : -1;
        total = done < 0 ? -1 : total + done;
        free(inner);
        free(names[i]);
    }
    free(names);
    return count < 0 ? -1 : total;
}

int main(int argc, char **argv) {
    int total = 0;
    if (LLVMFuzzerInitialize(&argc, &argv)) return 1;
    for (int i = 1; i < argc; i++) {
        int done = run_path(argv[i]);
        if (done < 0) {
            fprintf(stderr, "replay: %s\n", report_sentence());
            return 1;
        }
        total += done;
    }
    printf("%d passed, 0 failed\n", total);
    return 0;
}
