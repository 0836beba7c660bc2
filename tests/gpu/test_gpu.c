/* test_gpu: compares the CUDA backend with the CPU backend and with itself, only through struct backend_ops.
 *
 *   test_gpu [NAME]      all tests, or those whose name begins with NAME
 *   test_gpu --speed [small|large]   pairs per second of two large shapes, by place, with small or large batches
 *
 * Each threshold of the kernels, and the tests that have cases on both sides of it:
 *
 *   a file's rows, hot rows, BACKEND_STAGES    depths, order, random
 *   MOVED_ROWS, MOVED_QUADS, WIDE_RECORD, all  depths, random (aim "moving"): records of 1 to 4,096 columns
 *   that move at once; one target
 *   tiles of ranks that differ by a quad       tests/cli/test_ranks_gpu: 256 and 260, 512 and 516 columns
 *   EXAMPLE_MOST_PADDED, counted batches       bounds, batches, random (aim "padding")
 *   SMALL_BATCH: builders of batches           depths, random and estimate (aim "builders")
 *   EXAMPLE_MOST_NEGATIVES                     bounds
 *   2^31 examples, contexts                    refusals (the side that fits takes 100 GB of the GPU)
 *   SLOT_BITS: 2^28 cold rows of a batch       none: 32 GiB of slots
 *   DRAW_ATTEMPTS: slots left out              batches (vocabularies of 2 and 3 rows)
 *   NEGATIVE_LANE_BITS, DISTINCT_THREADS, _SLOTS   batches, bounds
 *   key bits: rows at powers of two            random (aim "small"), tests/runs
 *   ITEM_MOST, single rows                     items, plain, frequent
 *   partial sums that a group of threads computes in turn   turns: one, two, four, and more than are looked up ahead
 *   columns of a group of threads              steps, blocks: 128, 256, 384, 512, 1024, 2048 and one more
 *   contexts that groups share, WIDE_BLOCKS    blocks: 31 to 33 contexts, 255 to 257 blocks
 *   rows of the host that an update visits      ids: 450 and 451 rows of 901 on the GPU; 512 and 516 columns
 *   tiles of dot_windows, AHEAD                steps, wide
 *   CORRECTIONS                                late
 *   columns of bfloat16 kernels                halves: 64, 128, 192, 256, 512 and one more
 *   THREAD_BITS of shared negatives            shared: 255 of them and more than 256; batches: 511 to 514
 *   LEARN_CTA, columns of kernels_for_few      losses, frozen: 32, 64, 128, 256, 512, 1024, 2048 and one more
 *   HUGE_PAGE, TRANSFER_BYTES, TOUCH_PIECE     rows
 *   2^31 tokens, 2^32 - 2 rows                 tests/runs --long; PIN_PIECE with SPTX_PIN_ROWS=1 as well
 *   a table's first row                        first, random, estimate
 *   managed rows, or pinned (SPTX_PIN_ROWS)    tests/cli/test_backends, tests/python/test_gpu, scripts/check_gpu: gpu/pinned
 *   CPU_GRAIN, more threads than rows          random: batches of 127 to 129, 1 to 16 threads
 *   of hogwild.cu and search_topk.cu                  hogwild, topk
 *   COLUMNS and HUB_ARCS of filter.cu                 filter
 *   CHUNK of fold_in.cu                               fold
 *   of lists by id (by_id.cuh)                 tests/python/test_gpu: FEW, NEAR_BYTES, DENSE_BYTES, CLAIMED_MOST, GIVEN
 *
 * Prints a line for each failed case, and at the end "N passed, N failed". Exits with 2 if there is no GPU.
 */
#include "common.h"
#include "tests/fresh_directory.h"

#include <unistd.h>

static void random_on_gpu(void) {
    test_random(&backend_cuda);
}

static void first_rows_on_gpu(void) {
    test_first_rows(&backend_cuda);
}

/* Returns 1 if a test is to run: its name begins with one of `names`; after --but, with none of them. */
static int is_wanted(const char *name, int count, char **names) {
    int but = count > 0 && !strcmp(names[0], "--but");
    for (int i = but; i < count; i++)
        if (!strncmp(name, names[i], strlen(names[i]))) return !but;
    return count == 0 || but;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {{"refusals", test_refusals},
                 {"rows", test_rows},
                 {"batches", test_batches},
                 {"bounds", test_batch_bounds},
                 {"steps", test_steps},
                 {"wide", test_wide_windows},
                 {"frequent", test_frequent_rows},
                 {"items", test_items},
                 {"plain", test_plain_items},
                 {"turns", test_turns},
                 {"blocks", test_blocks},
                 {"late", test_late_updates},
                 {"losses", test_losses},
                 {"shared", test_shared},
                 {"frozen", test_frozen},
                 {"halves", test_halves},
                 {"stages", test_stages},
                 {"snapshots", test_snapshots},
                 {"depths", test_depths},
                 {"estimate", test_estimate},
                 {"order", test_order},
                 {"random", random_on_gpu},
                 {"hogwild", test_hogwild},
                 {"hogwild-worker", test_hogwild_worker},
                 {"topk", test_topk},
                 {"filter", test_filter},
                 {"copies", test_copies},
                 {"fold", test_fold_in},
                 {"runs", test_runs},
                 {"first", first_rows_on_gpu},
                 {"ids", test_by_id}};
    char why[256];
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!backend_cuda.present(why, sizeof why)) {
        printf("no test was run: %s\n", why);
        return 2;
    }
    if (argc > 1 && !strcmp(argv[1], "--speed")) {
        speed(argc > 2 ? argv[2] : "all");
        return 0;
    }
    if (fresh_directory(directory, sizeof directory, "gpu")) return 1;
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        int before = failed, sure = passed;
        double start = now();
        if (!is_wanted(tests[i].name, argc - 1, argv + 1)) continue;
        tests[i].run();
        printf("%s: %d passed, %d failed, %.1f s\n", tests[i].name, passed - sure, failed - before, now() - start);
    }
    rmdir(directory);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
