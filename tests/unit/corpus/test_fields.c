#include "tests/testing.h"

#include "corpus/fields.h"
#include "config/config.h"
#include "tests/unit/plain_options.h"
#include "tests/unit/scratch.h"

/* Returns the fields that a format finds in a file read in blocks of three bytes: "N:" before a name, "/" at the end of a line. */
static const char *fields_of(const char *text, enum corpus_format format) {
    static char out[1024];
    struct corpus_options options = plain_options(format);
    struct corpus *corpus = scratch_corpus(scratch_text("fields", text), 3);
    struct corpus_block block = {0};
    struct corpus_fields fields;
    struct corpus_field field;
    size_t used = 0;
    options.look.header = HEADER_NO;
    options.weights = WEIGHTS_NO;
    options.look.no_values = 1;
    *out = 0;
    corpus_read_as(corpus, &options);
    while (corpus_next(corpus, &block) > 0) {
        corpus_fields_start(&fields, &block, &options);
        while (corpus_fields_next(&fields, &field) > 0)
            if (field.text)
                used += (size_t)sprintf(out + used, "%s%.*s@%d ",
                                        field.part == PART_NAME     ? "N:"
                                        : field.part == PART_RATING ? "R:"
                                                                    : "",
                                        (int)field.length, field.text, (int)field.line);
            else
                used += (size_t)sprintf(out + used, "/ ");
    }
    corpus_block_release(&block);
    corpus_close(corpus);
    return out;
}

static void each_format_reads_its_lines(void **state) {
    static const char *const of_formats[CORPUS_FORMATS] = {
        [FORMAT_TEXT] = "anna@1 b,c@1 3@1 / bob@2 d@2 / eve@3 f@3 g@3 ",
        [FORMAT_LISTS] = "N:anna@1 b,c@1 3@1 / N:bob@2 d@2 / N:eve@3 f@3 g@3 ",
        [FORMAT_ADJACENCY] = "anna@1 b,c@1 3@1 / bob@2 d@2 / eve@3 f@3 g@3 ",
    };
    for (int format = 0; format < CORPUS_FORMATS; format++)
        if (of_formats[format])
            assert_string_equal(fields_of("anna b,c 3\nbob d\neve f g", (enum corpus_format)format), of_formats[format]);
    assert_string_equal(fields_of("anna,b,3\nbob,d", FORMAT_PAIRS), "N:anna@1 b@1 N:bob@2 d@2 ");
    assert_string_equal(fields_of("anna,b,3\nb,b,4", FORMAT_TRIPLES), "anna@1 N:b@1 3@1 b@2 N:b@2 4@2 ");
    assert_string_equal(fields_of("anna,b,3\nb,b\n# bob\nbob,d", FORMAT_GRAPH), "anna@1 b@1 bob@4 d@4 ");
}

static void every_format_is_complete_and_a_choice_of_its_key(void **state) {
    for (int format = 0; format < CORPUS_FORMATS; format++) {
        const struct corpus_format_properties *properties = &corpus_formats[format];
        assert_string_equal(config_choice_name("corpus", "format", format), properties->name);
        assert_non_null(properties->read);
        assert_non_null(properties->lines);
        assert_non_null(strstr(corpus_format_help, properties->name));
        assert_true(!properties->columns || (properties->wanted && (properties->whole_lines || properties->documents)));
        assert_true(!properties->scattered || (properties->names && properties->whole_lines));
    }
    assert_string_equal(config_choice_name("corpus", "format", CORPUS_FORMATS), "?");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_format_reads_its_lines, scratch_make, scratch_remove),
        cmocka_unit_test(every_format_is_complete_and_a_choice_of_its_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
