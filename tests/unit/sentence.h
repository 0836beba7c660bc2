/* sentence: checks the message of the last failure and clears it. Include this header after testing.h. */
#include "base/report.h"

static void sentence_holds(const char *part) {
    if (!strstr(report_sentence(), part)) print_error("'%s' lacks '%s'\n", report_sentence(), part);
    assert_non_null(strstr(report_sentence(), part));
    report_clear();
}
