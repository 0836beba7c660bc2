#include "format.h"

#include "fields.h"

const struct corpus_format_properties corpus_formats[CORPUS_FORMATS] = {
#define FORMAT(format, enumerator, row, help, ...) [enumerator] = {.name = #format, .rows = row, __VA_ARGS__},
#include "formats.def"
};

const char corpus_format_names[] =
#define FORMAT(format, ...) "|" #format
#include "formats.def"
    ;

const char corpus_format_help[] =
    "what a line of the corpus is"
#define FORMAT(format, enumerator, rows, help, ...) "\n  " #format ": " help
#include "formats.def"
    ;
