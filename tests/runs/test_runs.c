/* test_runs: what the GPU's tests can do without one.
 *
 *   test_runs          runs chosen at random (tests/gpu/random.c) of the CPU backend, its tables that begin behind row 0
 *                      (tests/gpu/first_rows.c), and its tables of 4 GiB
 *   test_runs --long   sizes at the edge (tests/gpu/edge.c), of the GPU too where there is one
 *
 * Prints a line a failed case, and one of what the machine has no room for; ends with "N passed, N failed, N skipped".
 */
#include "tests/fresh_directory.h"
#include "tests/gpu/common.h"

#include <unistd.h>

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (fresh_directory(directory, sizeof directory, "runs")) return 1;
    if (argc > 1 && !strcmp(argv[1], "--long")) {
        test_edge();
    } else {
        test_random(&backend_cpu);
        test_first_rows(&backend_cpu);
        test_far_rows();
    }
    rmdir(directory);
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed != 0;
}
