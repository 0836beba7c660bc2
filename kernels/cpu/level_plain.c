/* level_plain: processors for which rows.c is compiled once, for what the compiler takes as their base. */
#include "rows.h"

extern const struct cpu_rows cpu_rows_base;

const struct cpu_rows *cpu_rows_best(void) {
    return &cpu_rows_base;
}
