/* level_plain: for other processors, for which rows.c is compiled only once, with the compiler's default instructions. */
#include "rows.h"

extern const struct cpu_rows cpu_rows_base;

const struct cpu_rows *cpu_rows_best(void) {
    return &cpu_rows_base;
}
