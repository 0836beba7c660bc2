/* level_arm: chooses the version of rows.c for a 64-bit Arm processor. Both use NEON's vectors of four floats; level `neon` also fuses
 * multiplication and addition. */
#include "rows.h"

#include <stdlib.h>
#include <string.h>

extern const struct cpu_rows cpu_rows_base, cpu_rows_neon;

const struct cpu_rows *cpu_rows_best(void) {
    const char *most = getenv("SPTX_LEVEL"); /* for tests: name of the highest level to use */
    return most && !strcmp(most, cpu_rows_base.name) ? &cpu_rows_base : &cpu_rows_neon;
}
