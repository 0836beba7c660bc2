/* cpu_level_plain: processors for which cpu_rows.c is compiled once, for what the compiler takes as their base. */
#include "cpu_rows.h"

extern const struct cpu_rows cpu_rows_base;

const struct cpu_rows *cpu_rows_best(void) {
    return &cpu_rows_base;
}
