/* level_arm: chooses the version of rows.c that a 64-bit Arm processor runs. Both versions use NEON's vectors of four floats; the
 * level `neon` also fuses products with sums. */
#include "rows.h"

#include <stdlib.h>
#include <string.h>

extern const struct cpu_rows cpu_rows_base, cpu_rows_neon;

const struct cpu_rows *cpu_rows_best(void) {
    const char *most = getenv("SPTX_LEVEL"); /* for tests: the name of the highest level that may be used */
    return most && !strcmp(most, cpu_rows_base.name) ? &cpu_rows_base : &cpu_rows_neon;
}
