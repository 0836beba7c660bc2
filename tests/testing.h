/* testing: every C test includes this first. It includes cmocka and the headers that cmocka needs, and the part of the C library
 * that most tests use. base/report.h declares a function fail(), so the macro fail() of cmocka is removed, and fail_msg() is
 * defined without it. */
#ifndef SPTX_TESTING_H
#define SPTX_TESTING_H

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#undef fail
#undef fail_msg
#define fail_msg(...) (print_error(__VA_ARGS__), print_error("\n"), _fail(__FILE__, __LINE__))

#endif
