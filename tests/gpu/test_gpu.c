/* test_gpu: the CUDA backend against the CPU backend and against itself, through struct backend_ops alone.
 *
 *   test_gpu [NAME]      all tests, or those whose name begins with NAME
 *   test_gpu --speed [small|large]   pairs a second of the two large shapes, by place, of such batches
 *
 * Prints a line a failed case and ends with "N passed, N failed"; 2 where there is no GPU.
 */
#include "common.h"
#include "tests/fresh_directory.h"

#include <unistd.h>

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {{"refusals", test_refusals},
                 {"rows", test_rows},
                 {"batches", test_batches},
                 {"steps", test_steps},
                 {"wide", test_wide_windows},
                 {"frequent", test_frequent_rows},
                 {"depths", test_depths},
                 {"hogwild", test_hogwild},
                 {"hogwild-worker", test_hogwild_worker},
                 {"topk", test_topk},
                 {"runs", test_runs}};
    char why[256];
    if (!backend_cuda_present(why, sizeof why)) {
        printf("no test was run: %s\n", why);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc > 1 && !strcmp(argv[1], "--speed")) {
        speed(argc > 2 ? argv[2] : "all");
        return 0;
    }
    if (fresh_directory(directory, sizeof directory, "gpu")) return 1;
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        int before = failed, sure = passed;
        double start = now();
        if (argc > 1 && strncmp(tests[i].name, argv[1], strlen(argv[1]))) continue;
        tests[i].run();
        printf("%s: %d passed, %d failed, %.1f s\n", tests[i].name, passed - sure, failed - before, now() - start);
    }
    rmdir(directory);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
