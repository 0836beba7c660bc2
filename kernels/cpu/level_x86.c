/* level_x86: chooses the fastest version of rows.c that this x86-64 processor can run. */
#include "rows.h"

#include <stdlib.h>
#include <string.h>

extern const struct cpu_rows cpu_rows_base, cpu_rows_v3, cpu_rows_v4;

const struct cpu_rows *cpu_rows_best(void) {
    const struct cpu_rows *levels[] = {&cpu_rows_base, &cpu_rows_v3, &cpu_rows_v4};
    const char *most = getenv("SPTX_LEVEL"); /* for tests: name of the highest level to use */
    int best = 0;
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2")) best = 1;
    if (best && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd"))
        best = 2;
    for (int i = 0; most && i < best; i++)
        if (!strcmp(most, levels[i]->name)) best = i;
    return levels[best];
}
