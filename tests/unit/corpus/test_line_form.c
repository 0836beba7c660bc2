#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>

#include "corpus/line_form.h"

#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void a_few_lines_are_judged(void **state) {
    static const struct {
        const char *text;
        enum line_form form;
    } all[] = {{"user,item,rating\n1,2,3\n4,5,6\n7,8,4.5\n", LINES_RATINGS},
               {"a,b,3\na,c,5\nb,c,1\nb,d,2\n", LINES_RATINGS},
               {"a,b,3\na,c,5\nb,c,1", LINES_RATINGS}, /* the last line has no line end */
               {"1\t2\t3\t881250949\n1\t3\t3\t881250949\n1\t4\t2\t881250949\n2\t4\t5\t881250949\n", LINES_RATINGS},
               {"a,b,3\n", LINES_PAIRS},                                 /* too few for ratings */
               {"a,b\na,c\na,d\na,e\n", LINES_PAIRS},                    /* no ratings */
               {"a,b,3\na,c,5\nb,c,1\nyes, a,b,2\n", LINES_LISTS},       /* a sentence */
               {"a b 3\na c 5\nb c 1\nb d 2\n", LINES_PAIRS},            /* words and a number, or a rating */
               {"a,b,c\na,b,d\na,b,e\na,b,f\n", LINES_PAIRS},            /* the third field is no number */
               {"a,,3\na,,5\nb,,1\nb,,2\n", LINES_PAIRS},                /* a hole */
               {"a,,3,4\na,,5,4\nb,,1,4\n", LINES_PAIRS},                /* a hole before a number */
               {"a,b,3,x,y\na,c,5,x,y\nb,c,1,x,y\n", LINES_PAIRS},       /* five fields */
               {"a b c\na b d e\n", LINES_LISTS},                        /* not as many in each */
               {"a b c d e\nb c d e f\n", LINES_LISTS},                  /* five */
               {"a\nb\n", LINES_LISTS},                                  /* one */
               {"a b c\nb c d\n", LINES_LISTS},                          /* the third field is no number */
               {"a b\nb c\na d\n", LINES_UNCLEAR},                       /* the same either way */
               {"a 7 3\nb 8 4\n", LINES_UNCLEAR},                        /* a list of two items, or a rating */
               {"user item rating\na b 3\na c 5\nb c 1\n", LINES_PAIRS}, /* a header and words with a number */
               {"\n\n a,b,3\n\na,c,5\nb,c,1\n", LINES_RATINGS},          /* lines that hold nothing */
               {"\n", LINES_UNCLEAR},
               {"", LINES_UNCLEAR}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_int_equal(line_form(all[i].text, strlen(all[i].text)), all[i].form);
}

/* Makes a hundred lines of a name, a number, and one of so many other numbers. */
static int form_of_numbers(int names, int numbers, char between) {
    char text[4000], *at = text;
    for (int line = 0; line < 100; line++)
        at += sprintf(at, "n%d%c%d%c%d\n", line % names, between, line, between, line % numbers);
    return line_form(text, (uint64_t)(at - text));
}

static void many_lines_tell_ratings_from_lists_of_two(void **state) {
    assert_int_equal(form_of_numbers(100, 100, '\t'), LINES_LISTS);
    assert_int_equal(form_of_numbers(100, 100, ' '), LINES_LISTS);
    assert_int_equal(form_of_numbers(100, 5, '\t'), LINES_RATINGS); /* few numbers */
    assert_int_equal(form_of_numbers(100, 5, ' '), LINES_PAIRS);
    assert_int_equal(form_of_numbers(50, 100, '\t'), LINES_RATINGS); /* names come again */
    assert_int_equal(form_of_numbers(100, 100, ','), LINES_RATINGS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_few_lines_are_judged),
        cmocka_unit_test(many_lines_tell_ratings_from_lists_of_two),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
