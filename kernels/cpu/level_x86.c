/* level_x86: chooses the version of rows.c that this x86-64 processor can run fastest. */
#include "rows.h"

extern const struct cpu_rows cpu_rows_base, cpu_rows_v3, cpu_rows_v4;

const struct cpu_rows *cpu_rows_best(void) {
    __builtin_cpu_init();
    int v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    int v4 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
             __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd");
    return v3 && v4 ? &cpu_rows_v4 : v3 ? &cpu_rows_v3 : &cpu_rows_base;
}
