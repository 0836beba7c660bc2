/* config_text: reads configs from the text of an INI file, and checks the error messages about texts that are refused. */
#include "config/config.h"
#include "tests/unit/scratch.h"

#include "tests/testing.h"

/* Reads a config from the text of an INI file. Returns 0, or -1 with an error message. The caller releases the config. */
static int read_text(struct config *config, const char *text) {
    assert_int_equal(config_init(config), 0);
    return config_read(config, scratch_text("some run.ini", text));
}

static int read_resolved(struct config *config, const char *text) {
    return read_text(config, text) ? -1 : config_resolve(config);
}

/* Checks that the text is refused, and that the error message contains all the given strings (the last argument is NULL). */
__attribute__((unused)) static void assert_sentence(const char *text, ...) {
    va_list parts;
    const char *part;
    va_start(parts, text);
    while ((part = va_arg(parts, const char *)))
        if (!strstr(report_sentence(), part))
            fail_msg("from \"%s\"\n  wanted \"%s\"\n  in     \"%s\"", text, part, report_sentence());
    va_end(parts);
    report_clear();
}

#define REFUSES(text, ...)                                                                                             \
    do {                                                                                                               \
        struct config refused;                                                                                         \
        assert_int_equal(read_resolved(&refused, text), -1);                                                           \
        assert_int_equal(report_exit_code(), 1);                                                                       \
        assert_sentence(text, __VA_ARGS__, NULL);                                                                      \
        config_release(&refused);                                                                                      \
    } while (0)

#define RESOLVES(text)                                                                                                 \
    struct config config;                                                                                              \
    if (read_resolved(&config, text)) fail_msg("refused \"%s\": %s", text, report_sentence())
