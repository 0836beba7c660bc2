#include "config/config.h"
#include "kernels/backend.h"
#include "rows/rules.h"
#include "run/model_files.h"
#include "tests/unit/config_text.h"

/* ---- defaults ---- */

static void defaults_are_what_is_promised(void **state) {
    struct config c;
    assert_int_equal(config_init(&c), 0);
    assert_string_equal(c.corpus_path, "");
    assert_int_equal(c.corpus_format, FORMAT_TEXT);
    assert_int_equal(c.corpus_max_sentence, 1000);
    assert_true(c.corpus_min_count == COUNT_AUTO);
    assert_true(c.model_dim == COUNT_AUTO); /* undecided: 128 or 256, depending on train.effort */
    assert_true(isnan(c.optimizer_lr));
    assert_true(c.negatives_power == 0.75);
    assert_int_equal(c.examples_shrink, 1);
    assert_int_equal(c.examples_shuffle, TRUTH_AUTO);
    assert_int_equal(c.memory_target, PLACE_PINNED);
    assert_int_equal(c.memory_context_state, PLACE_GPU);
    assert_true(c.memory_gpu_budget == COUNT_AUTO);
    assert_null(c.name);
    config_release(&c);
    config_release(&c); /* releasing a config twice does no harm */
}

/* The choices in config.def must be in the same order as the enums. */
static void choices_stand_in_the_order_of_their_enums(void **state) {
    static const struct {
        const char *section, *key, *name;
        int value;
    } all[] = {{"corpus", "format", "pairs", FORMAT_PAIRS},
               {"corpus", "order", "given", ORDER_GIVEN},
               {"examples", "mode", "adjacency", EXAMPLE_ADJACENCY},
               {"examples", "targets", "all", TARGETS_ALL},
               {"examples", "short", "repeat", SHORT_REPEAT},
               {"negatives", "per", "example", PER_EXAMPLE},
               {"negatives", "per", "auto", PER_AUTO},
               {"negatives", "law", "log-uniform", NOISE_LOG_UNIFORM},
               {"optimizer", "schedule", "cosine", SCHEDULE_COSINE},
               {"optimizer", "bias_correction", "row", COUNT_ROW},
               {"train", "update", "hogwild", UPDATE_HOGWILD},
               {"train", "reduction", "mean", REDUCTION_MEAN},
               {"device", "backend", "cuda", BACKEND_AUTO + 2},
               {"memory", "context", "auto", PLACE_AUTO},
               {"memory", "target_state", "file", PLACE_FILE}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_string_equal(config_choice_name(all[i].section, all[i].key, all[i].value), all[i].name);
    assert_string_equal(config_choice_name("train", "update", 3), "?");
    assert_string_equal(config_choice_name("train", "epochs", 0), "?");
#define RULE_NAME(name, enumerator) [enumerator] = #name,
    static const char *const rules[] = {RULES(RULE_NAME)};
    for (int i = 0; i < RULE_COUNT; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s", rules[i]);
        for (char *at = name; *at; at++)
            if (*at == '_') *at = '-';
        assert_string_equal(config_choice_name("optimizer", "rule", i), name);
    }
    assert_string_equal(config_choice_name("optimizer", "rule", RULE_AUTO), "auto");
    assert_string_equal(config_choice_name("optimizer", "rule", RULE_AUTO + 1), "?");
}

/* An optimizer has the same default options in a run without keys as in a table of libsptx. Only a run clips the sums of sgd. */
static void optimizers_have_the_defaults_of_their_rules(void **state) {
    for (int rule = 0; rule < RULE_COUNT; rule++) {
        char text[256];
        struct config c;
        struct rule_options usual = rules_defaults(rule), resolved;
        snprintf(text, sizeof text, "[optimizer]\nrule=%s\n[train]\nupdate=batch",
                 config_choice_name("optimizer", "rule", rule));
        assert_int_equal(read_resolved(&c, text), 0);
        resolved = tables_rule(&c);
        resolved.lr = usual.lr; /* learning rates are an exception: a run has other defaults */
        resolved.count_rows = usual.count_rows;
        assert_true(resolved.clip == (rule == RULE_SGD ? 30 : 0));
        resolved.clip = usual.clip;
        assert_memory_equal(&resolved, &usual, sizeof usual);
        config_release(&c);
    }
}

/* ---- reading ---- */

static void reads_an_ini(void **state) {
    struct config c;
    assert_int_equal(read_text(&c,
                               "# a comment\n; another\n\n[corpus]\npath = a.txt b.txt ; said so\r\n  format=LISTS\n"
                               "[train]\nepochs : 1e1\nbatch = 2_048\nheld_out=.125\n[memory]\ngpu_budget = 11GiB\n"
                               "[examples]\nshrink = off\n[run]\ndir = \"out here\""),
                     0);
    assert_string_equal(c.corpus_path, "a.txt b.txt");
    assert_int_equal(c.corpus_format, FORMAT_LISTS);
    assert_int_equal(c.train_epochs, 10);
    assert_int_equal(c.train_batch, 2048);
    assert_true(c.train_held_out == 0.125);
    assert_true(c.memory_gpu_budget == 11ull << 30);
    assert_int_equal(c.examples_shrink, 0);
    assert_string_equal(c.run_dir, "out here");
    assert_string_equal(c.name, "some run");
    config_release(&c);
}

static void reads_what_editors_leave(void **state) {
    struct config c;
    assert_int_equal(read_text(&c, "\xEF\xBB\xBF[model]\r\ndim = 7\r\n\r\n"), 0); /* a byte order mark, and lines that end in CR
                                                                                   * LF */
    assert_int_equal(c.model_dim, 7);
    config_release(&c);
    assert_int_equal(read_text(&c, ""), 0);
    config_release(&c);
}

/* One file may contain line ends of Windows (CR LF), of Unix (LF) and of old Macs (CR). */
static void reads_lines_however_they_end(void **state) {
    static const char *const ends[] = {"\n", "\r\n", "\r"};
    for (int first = 0; first < 3; first++)
        for (int second = 0; second < 3; second++) {
            char text[256];
            struct config c;
            sprintf(text, "[model]%s%sdim = 7%s# epochs = 1%s[train]%sepochs = 3%s%sbatch = 5", ends[first], ends[second],
                    ends[second], ends[first], ends[second], ends[first], ends[first]);
            assert_int_equal(read_text(&c, text), 0);
            assert_int_equal(c.model_dim, 7);
            assert_int_equal(c.train_epochs, 3);
            assert_int_equal(c.train_batch, 5);
            config_release(&c);
        }
    REFUSES("[model]\rdim = 7\r\rdimm = 3\r", "line 4");
    REFUSES("[model]\r\ndim = 7\n\rdimm = 3\r", "line 4");
}

static void blanks_take_nothing_away(void **state) {
    for (int blanks = 0; blanks < 1000; blanks = blanks ? blanks * 3 : 1) {
        char text[16384];
        struct config c;
        sprintf(text, "%*s[%*smodel%*s]%*s; a comment\n%*sdim%*s=%*s7%*s\n", blanks, "", blanks, "", blanks, "", blanks, "",
                blanks, "", blanks, "", blanks, "", blanks, "");
        assert_int_equal(read_text(&c, text), 0);
        assert_int_equal(c.model_dim, 7);
        config_release(&c);
    }
}

/* Lines, names and values may be of any length. */
static void reads_lines_of_any_length(void **state) {
    for (size_t length = 180; length < 100000; length = length < 210 ? length + 1 : length * 7) {
        char *path = calloc(length + 1, 1), *text = calloc(3 * length + 200, 1);
        struct config c;
        memset(path, 'x', length);
        sprintf(text, "# %s [model] dim = 1\n[corpus]\npath = %s ; a comment\nformat = pairs\n; %s\n[model]\ndim=9\n",
                path, path, path);
        assert_int_equal(read_text(&c, text), 0);
        assert_string_equal(c.corpus_path, path);
        assert_int_equal(c.corpus_format, FORMAT_PAIRS);
        assert_int_equal(c.model_dim, 9);
        config_release(&c);
        free(path);
        free(text);
    }
}

/* If several paths are given one a line, the lines after the first are indented; the INI parser (inih) joins them to one value. */
static void values_go_on_in_indented_lines(void **state) {
    struct config c;
    assert_int_equal(read_text(&c,
                               "[corpus]\npath = a.txt ; the first\n    b.txt,\n# none\n\n\t\"c d.txt\" ; the last\n"
                               "format = pairs\n[train]\nfrom =\n  old.txt\r    words.tsv\r\n[model]\ndim = 9"),
                     0);
    assert_string_equal(c.corpus_path, "a.txt b.txt, \"c d.txt\"");
    assert_int_equal(c.corpus_format, FORMAT_PAIRS);
    assert_string_equal(c.train_from, "old.txt words.tsv");
    assert_int_equal(c.model_dim, 9);
    config_release(&c);
}

/* A key may be indented. It is still a key, not part of the value above it. */
static void indented_keys_are_keys(void **state) {
    struct config c;
    assert_int_equal(read_text(&c, "[corpus]\n  path = a\n  format = lists\n    min_count = 7\n  [model]\n\tdim:3\n"
                                   "[run]\nkeep = 2\n  dir=runs/x\n[corpus]\npath = b\n  lang=en/x\n  [train]\nepochs=2"),
                     0);
    assert_string_equal(c.corpus_path, "b lang=en/x");
    assert_string_equal(c.run_dir, "runs/x");
    assert_int_equal(c.corpus_format, FORMAT_LISTS);
    assert_int_equal(c.corpus_min_count, 7);
    assert_int_equal(c.model_dim, 3);
    assert_int_equal(c.train_epochs, 2);
    config_release(&c);
    REFUSES("[model]\n  dim = 3\n  dimm = 4\n", "line 3: [model] has no key 'dimm'");
    REFUSES("[run]\ndir = runs/x\n  kep = 4\n", "line 3: [run] has no key 'kep'");
    REFUSES("[run]\ndir = runs/x\n\tkep: runs/4\n", "line 3: [run] has no key 'kep'");
    REFUSES("[corpus]\npath = a.txt\n  formt=lists\n", "line 3: [corpus] has no key 'formt'");
    REFUSES("[train]\nloss = softmax\n  model.dims=3\n", "line 3: [train] has no key 'model.dims'");
}

/* inih reads at most 199 bytes of a line at a time. Wherever this cuts a value, no byte may be lost or added. */
static void long_values_keep_every_byte(void **state) {
    static const char odd[] = "  ;;#= :.[];\"\t x";
    for (size_t length = 150; length < 1200; length += 1 + length / 100) {
        char path[1300], text[2800];
        struct config c;
        for (size_t i = 0; i < length; i++) path[i] = odd[scratch_random(sizeof odd - 1)];
        path[0] = '/'; /* begins with '/', since a line that begins with a name and '=' would be another key */
        path[length - 1] = 'x';
        path[length] = 0;
        for (char *at = path + 1; *at; at++)
            if (*at == ';' && (at[-1] == ' ' || at[-1] == '\t')) *at = '.';
        sprintf(text, "[corpus]\npath=%s ; comment\n%s\n", path, length % 2 ? "[model]" : "");
        assert_int_equal(read_text(&c, text), 0);
        assert_string_equal(c.corpus_path, path);
        config_release(&c);
        sprintf(text, "[corpus]\npath=%s\n %s\t;comment", path, path);
        assert_int_equal(read_text(&c, text), 0);
        assert_int_equal(strlen(c.corpus_path), 2 * length + 1);
        assert_true(!strncmp(c.corpus_path, path, length) && c.corpus_path[length] == ' ');
        assert_string_equal(c.corpus_path + length + 1, path);
        config_release(&c);
    }
}

static void the_last_of_two_settings_counts(void **state) {
    struct config c;
    assert_int_equal(read_text(&c, "[model]\ndim = 3\n[train]\nseed = 2\n[model]\ndim = 4\n"), 0);
    assert_int_equal(c.model_dim, 4);
    config_release(&c);
    REFUSES("[corpus]\npath = a\n  b\n[model]\ndim = 3\ndim = x\n", "line 6: model.dim = 'x'");
}

static void refuses_with_line_and_nearest_name(void **state) {
    REFUSES("[train]\nepochs = 3\n\nepoch = 5\n", "some run.ini line 4", "[train] has no key 'epoch'",
            "did you mean 'epochs'");
    REFUSES("[trian]\nepochs = 3\n", "line 1", "no section 'trian'", "did you mean 'train'");
    REFUSES("[train]\n\n[modle]\n", "line 3", "no section 'modle'"); /* the section is refused even if it has no keys */
    REFUSES("[zzzzzzzz]\nepochs = 3\n", "no section 'zzzzzzzz'", "corpus, phrases, graph, triples, examples, walks, negatives");
    REFUSES("[train]\ndim = 3\n", "[train] has no key 'dim'", "model.dim");
    REFUSES("[train]\nqqqqqqqqqqq = 3\n", "no key 'qqqqqqqqqqq'", "help keys");
    REFUSES("\n\n[optimizer]\nrule = adagrat\n", "line 4", "optimizer.rule = 'adagrat'", "sparse-adam",
            "did you mean 'adagrad'");
    REFUSES("[model]\ndim = 5000\n", "line 2", "model.dim = '5000'", "from 1 to 4,096");
    REFUSES("[model]\ndim = 0\n", "'0'", "from 1 to 4,096");
    REFUSES("[model]\ndim = 12.5\n", "'12.5'");
    REFUSES("[walks]\nlength = auto\n", "'auto'", "whole number");
    REFUSES("[model]\ndim =\n", "''", "whole number");
    REFUSES("[train]\nbatch = many\n", "'many'", "or auto");
    REFUSES("[train]\nseed = 4294967296\n", "4,294,967,295");
    REFUSES("[train]\nheld_out = nan\n", "'nan'", "from 0 to 0.9");
    REFUSES("[negatives]\nexclude = maybe\n", "'maybe'", "yes or no");
    REFUSES("[memory]\ngpu_budget = 11 GiBs\n", "'11 GiBs'", "11GiB");
    REFUSES("[corpus]\nmin_rating = good\n", "line 2", "'good'", "number or none");
    REFUSES("[run]\ncheckpoint_every = 5000\n", "line 2", "'5000'", "5000 steps");
    REFUSES("[run]\ndir = a\"b\n", "double quotes");
    REFUSES("[run]\ndir = a\x01b\n", "one line");
}

static void refuses_what_is_no_ini(void **state) {
    REFUSES("epochs = 3\n[train]\n", "line 1", "'epochs' stands under no section");
    REFUSES("[model]\ndim = 3\n[]\nx.y = 1\n", "line 3: there is no section ''");
    REFUSES("[model] dim = 3\n", "line 1: 'dim = 3' stands after the section");
    REFUSES("train.epochs = 3\n", "line 1", "'train.epochs' stands under no section", "write [train] above it");
    REFUSES("[train]\nepochs\n", "line 2: 'epochs' is neither [section] nor key = value");
    REFUSES("[train\nepochs = 3\n", "line 1: '[train' is neither");
    /* only an indented line continues a value */
    REFUSES("[corpus]\npath = a.txt\nb.txt\n", "line 3: ", "b.txt' is neither");
    REFUSES("[corpus]\n  path = a.txt\n  b.txt\n", "line 3: ", "b.txt' is neither");
    REFUSES("[corpus]\n  b.txt\n", "line 2: ", "b.txt' is neither");
    REFUSES("[model]\ndim = 1\n  28\n\n", "line 2: model.dim = '1 28' is not a whole number");
    REFUSES("the quick brown fox\njumps\n", "some run.ini' is no configuration", "write --corpus.path=/");
    REFUSES("# a comment\n\nthe quick = brown\n", "is no configuration");
    struct config c;
    assert_int_equal(config_init(&c), 0);
    assert_int_equal(config_read(&c, scratch_file("packed.gz", "\x1f\x8b\x08\0\0=\0", 7)), -1);
    assert_sentence("packed", "packed.gz' is no configuration", "write --corpus.path=/", NULL);
    assert_int_equal(config_read(&c, scratch_file("nul.ini", "[model]\n\0dim = 3\n", 17)), -1);
    assert_sentence("nul", "nul.ini", "NUL byte at 8", NULL);
    assert_int_equal(config_read(&c, in_scratch("absent.ini")), -1);
    assert_sentence("absent", "absent.ini", "No such file", NULL);
    assert_int_equal(config_read(&c, scratch), -1);
    assert_sentence("directory", "is a directory and no configuration; if its files", "write --corpus.path=/", NULL);
    config_release(&c);
}

static void a_long_line_is_refused_like_a_short_one(void **state) {
    char text[2000];
    snprintf(text, sizeof text, "[train]\n%01000d\n", 5);
    REFUSES(text, "line 2", "neither [section] nor key = value");
    snprintf(text, sizeof text, "[train]\nepochs = %01000d\nepoch = 1\n",
             5); /* a 5 after 999 zeros is read as 5 */
    REFUSES(text, "line 3", "'epoch'");
    snprintf(text, sizeof text, "[train]\nepochs = x%01000d\n", 5);
    REFUSES(text, "line 2", "train.epochs = 'x000");
    snprintf(text, sizeof text, "[train]\n%0500d = 1\n", 5);
    REFUSES(text, "line 2: [train] has no key '000");
    snprintf(text, sizeof text, "[%0500d]\nepochs = 1\n", 5);
    REFUSES(text, "line 1: there is no section '000");
    snprintf(text, sizeof text, "[train]\nseed = 1\n%060d = %01000d\n", 5, 6); /* inih keeps only 49 bytes of a name */
    REFUSES(text, "line 3: [train] has no key '000000000000000000000000000000000000000000000000000000000005'");
    snprintf(text, sizeof text, "[train]\nseed = 1\n[%060d]\n", 5);
    REFUSES(text, "line 3: there is no section '000000000000000000000000000000000000000000000000000000000005'");
    snprintf(text, sizeof text, "%0200d = 1\n[train]\n", 5);
    REFUSES(text, "line 1: '000", "stands under no section; write [section] above it");
}

/* ---- arguments ---- */

static void arguments_set_keys(void **state) {
    struct config c;
    assert_int_equal(config_init(&c), 0);
    assert_int_equal(config_argument(&c, "--model.dim=64", "command line"), 0);
    assert_int_equal(config_argument(&c, "--run.dir=a=b.c", "command line"), 0);
    assert_int_equal(config_argument(&c, "--corpus.cache=", "command line"), 0);
    assert_int_equal(c.model_dim, 64);
    assert_string_equal(c.run_dir, "a=b.c");
    assert_int_equal(config_argument(&c, "--resume", "command line"), 1);
    assert_int_equal(config_argument(&c, "--out=a.b", "command line"), 1);
    assert_int_equal(config_argument(&c, "model.dim=64", "command line"), 1);
    assert_int_equal(config_argument(&c, "--.dim=64", "command line"), 1);
    assert_int_equal(report_exit_code(), 0);
    static const char *const wrong[][2] = {{"--model.dim=0", "model.dim = '0'"},
                                           {"--model.dim", "--model.dim=..."},
                                           {"--model.dimm=3", "did you mean 'dim'"},
                                           {"--modle.dim=3", "did you mean 'model'"},
                                           {"--model.dim=", "model.dim = ''"},
                                           {"--run.dir=a ;b", "begins a comment"},
                                           {"--run.dir=a\nb", "one line"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(config_argument(&c, wrong[i][0], "command line"), -1);
        assert_int_equal(report_exit_code(), 2);
        assert_sentence(wrong[i][0], wrong[i][1], NULL);
    }
    assert_int_equal(c.model_dim, 64); /* the refused values have changed nothing */
    assert_int_equal(config_set(&c, "model", "dim", "65", "here"), 0);
    assert_int_equal(config_set(&c, "model", "dim", "x", "here"), -1);
    assert_int_equal(report_exit_code(), 1);
    assert_sentence("set", "here: model.dim = 'x'", NULL);
    assert_int_equal(c.model_dim, 65);
    config_release(&c);
}

/* ---- writing ---- */

static void writes_what_it_reads(void **state) {
    for (int help = 0; help < 2; help++) {
        char *once = NULL, *again = NULL, length[600];
        struct config c, back;
        memset(length, 'y', sizeof length);
        length[sizeof length - 1] = 0;
        assert_int_equal(config_init(&c), 0);
        assert_int_equal(config_set(&c, "corpus", "path", length, "here"), 0);
        assert_int_equal(config_set(&c, "corpus", "cache", "a  b # c;d", "here"), 0);
        assert_int_equal(config_set(&c, "optimizer", "lr", "0.1", "here"), 0);
        assert_int_equal(config_set(&c, "optimizer", "momentum", "0.30000000000000004", "here"), 0);
        assert_int_equal(config_set(&c, "optimizer", "eps", "1e-10", "here"), 0);
        assert_int_equal(config_set(&c, "optimizer", "t0", "123456789012345680", "here"), 0);
        assert_int_equal(config_set(&c, "negatives", "power", "-0.5", "here"), 0);
        assert_int_equal(config_set(&c, "memory", "gpu_budget", "1000001", "here"), 0);
        assert_int_equal(config_set(&c, "train", "steps", "4611686018427387903", "here"), 0);
        assert_int_equal(config_format(&c, help, &once), 0);
        assert_int_equal(read_text(&back, once), 0);
        assert_int_equal(config_format(&back, help, &again), 0);
        assert_string_equal(once, again);
        assert_non_null(strstr(once, "\nlr = 0.1\n"));
        assert_non_null(strstr(once, "\nmomentum = 0.30000000000000004\n"));
        assert_non_null(strstr(once, "\nrule = auto\n"));
        assert_non_null(strstr(once, "\nvocab =\n"));
        assert_true(back.train_steps == 4611686018427387903u && back.memory_gpu_budget == 1000001);
        assert_string_equal(back.corpus_cache, "a  b # c;d");
        /* the resolved config must be equal to one that is written, read and resolved again */
        assert_int_equal(config_resolve(&c), 0);
        free(once);
        assert_int_equal(config_format(&c, help, &once), 0);
        config_release(&back);
        assert_int_equal(read_resolved(&back, once), 0);
        free(again);
        assert_int_equal(config_format(&back, help, &again), 0);
        assert_string_equal(once, again);
        free(once);
        free(again);
        config_release(&c);
        config_release(&back);
    }
}

static void every_real_reads_back(void **state) {
    scratch_seed = 5;
    for (int i = 0; i < 20000; i++) {
        struct config c;
        char *text;
        double back;
        if (i % 2000 == 0) { /* one config is used for 2,000 numbers, since making a config is slow */
            if (i) config_release(&c);
            assert_int_equal(config_init(&c), 0);
        }
        c.optimizer_lr = scratch_random(1u << 31) * exp2((double)scratch_random(80) - 60) / (1 + scratch_random(1000));
        assert_non_null(text = config_value(&c, "optimizer", "lr"));
        back = strtod(text, NULL);
        assert_true(back == c.optimizer_lr);
        free(text);
        if (i == 19999) config_release(&c);
    }
}

static void sizes_read_back(void **state) {
    static const char *const sizes[][2] = {
        {"0", "0"}, {"11GiB", "11GiB"}, {"1536 MiB", "1536MiB"}, {"1GB", "976562.5KiB"}, {"999", "999"}};
    struct config c;
    assert_int_equal(config_init(&c), 0);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_int_equal(config_set(&c, "memory", "gpu_budget", sizes[i][0], "here"), 0);
        uint64_t bytes = c.memory_gpu_budget;
        char *text = config_value(&c, "memory", "gpu_budget");
        if (i != 3) assert_string_equal(text, sizes[i][1]);
        assert_int_equal(config_set(&c, "memory", "gpu_budget", text, "here"), 0);
        assert_true(c.memory_gpu_budget == bytes);
        free(text);
    }
    assert_null(config_value(&c, "memory", "nothing"));
    report_clear();
    config_release(&c);
}

/* ---- comparing ---- */

static void difference_names_what_changes_numbers(void **state) {
    static const char *const same[] = {"--run.dir=x",      "--device.threads=1", "--memory.depth=1",
                                       "--train.epochs=9", "--train.steps=9",    "--train.report_seconds=9",
                                       "--corpus.cache=x"};
    static const char *const other[] = {"--model.dim=3",    "--corpus.path=x",          "--optimizer.lr=0.02500001",
                                        "--train.seed=2",   "--examples.shrink=no",     "--examples.window=3",
                                        "--train.batch=77", "--model.target_init=zeros"};
    for (size_t i = 0; i < 7 + 8; i++) {
        const char *argument = i < 7 ? same[i] : other[i - 7];
        struct config a, b;
        assert_int_equal(config_init(&a), 0);
        assert_int_equal(config_init(&b), 0);
        assert_int_equal(config_argument(&b, argument, "command line"), 0);
        assert_int_equal(config_resolve(&a), 0);
        assert_int_equal(config_resolve(&b), 0);
        const char *key = config_difference(&a, &b);
        if (i < 7)
            assert_null(key);
        else
            assert_int_equal(strncmp(argument + 2, key, strlen(key)), 0);
        config_release(&a);
        config_release(&b);
    }
}

/* Keys that are still auto get the settled config's values if they affect the run's numbers. Keys that the user gave, and keys that affect no
 * number, stay. */
static void what_is_left_open_is_taken_from_a_settled_config(void **state) {
    for (int said = 0; said < 2; said++) {
        struct config open, settled;
        assert_int_equal(config_init(&open), 0);
        assert_int_equal(config_init(&settled), 0);
        if (said) assert_int_equal(config_argument(&open, "--train.batch=55", "command line"), 0);
        assert_int_equal(config_argument(&settled, "--train.batch=77", "command line"), 0);
        assert_int_equal(config_argument(&settled, "--memory.hot_rows=5", "command line"), 0);
        assert_int_equal(config_argument(&settled, "--optimizer.lr=0.5", "command line"), 0);
        assert_int_equal(config_argument(&settled, "--model.target_init=auto", "command line"), 0); /* where a value is a text, "auto" is one, too */
        assert_int_equal(config_resolve(&open), 0);
        assert_int_equal(config_resolve(&settled), 0);
        config_settle(&open, &settled);
        assert_int_equal(open.train_batch, said ? 55 : 77);
        assert_true(open.memory_hot_rows == COUNT_AUTO);
        assert_true(open.optimizer_lr == 0.025);
        assert_string_equal(open.model_target_init, "word2vec");
        config_release(&open);
        config_release(&settled);
    }
}

/* ---- paths ---- */

static void assert_paths(const char *text, int64_t count, ...) {
    char **paths;
    va_list wanted;
    assert_int_equal(config_paths("corpus.path", text, &paths), count);
    va_start(wanted, count);
    for (int64_t i = 0; i < count; i++) {
        assert_string_equal(paths[i], va_arg(wanted, const char *));
        free(paths[i]);
    }
    va_end(wanted);
    free(paths);
}

static void paths_are_taken_apart(void **state) {
    assert_paths("", 0);
    assert_paths(" , ", 0);
    assert_paths("a", 1, "a");
    assert_paths("a b,c , d", 4, "a", "b", "c", "d");
    assert_paths("\"a b\" c", 2, "a b", "c");
    assert_paths("\"a, b\",\"c\"", 2, "a, b", "c");
    char *odd = scratch_text("two words, \"one\" file", "x");
    assert_paths(odd, 1, odd); /* a file of exactly this name exists, so the name is not split at its blanks */
    char **paths;
    assert_int_equal(config_paths("corpus.path", "a \"b", &paths), -1);
    assert_sentence("paths", "not closed", NULL);
    assert_int_equal(config_paths("corpus.path", "a \"\"", &paths), -1);
    assert_sentence("paths", "empty", NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(defaults_are_what_is_promised),
                                       TEST(choices_stand_in_the_order_of_their_enums),
                                       TEST(optimizers_have_the_defaults_of_their_rules),
                                       TEST(reads_an_ini),
                                       TEST(reads_what_editors_leave),
                                       TEST(reads_lines_however_they_end),
                                       TEST(blanks_take_nothing_away),
                                       TEST(reads_lines_of_any_length),
                                       TEST(values_go_on_in_indented_lines),
                                       TEST(indented_keys_are_keys),
                                       TEST(long_values_keep_every_byte),
                                       TEST(the_last_of_two_settings_counts),
                                       TEST(refuses_with_line_and_nearest_name),
                                       TEST(refuses_what_is_no_ini),
                                       TEST(a_long_line_is_refused_like_a_short_one),
                                       TEST(arguments_set_keys),
                                       TEST(writes_what_it_reads),
                                       TEST(every_real_reads_back),
                                       TEST(sizes_read_back),
                                       TEST(difference_names_what_changes_numbers),
                                       TEST(what_is_left_open_is_taken_from_a_settled_config),
                                       TEST(paths_are_taken_apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
