#include "kernels/backend.h"
#include "tests/unit/config_text.h"

static void auto_on_text(void **state) {
    RESOLVES("");
    assert_int_equal(config.corpus_min_count, 5);
    assert_int_equal(config.examples_mode, EXAMPLE_WINDOW);
    assert_true(config.examples_subsample == 1e-4);
    assert_int_equal(config.examples_shuffle, 0);
    assert_int_equal(config.examples_shuffle_items, 0);
    assert_int_equal(config.negatives_per, PER_EXAMPLE);
    assert_int_equal(config.optimizer_rule, RULE_SGD);
    assert_true(config.optimizer_lr == 0.025);
    assert_int_equal(config.train_epochs, 5);
    assert_int_equal(config.examples_targets, TARGETS_ONE);
    assert_int_equal(config.optimizer_schedule, SCHEDULE_LINEAR);
    assert_int_equal(config.train_update, UPDATE_HOGWILD);
    assert_true(config.train_batch == COUNT_AUTO); /* undecided: the machine decides */
    assert_int_equal(config.device_backend, BACKEND_AUTO);
    assert_string_equal(config.run_dir, "runs/some run");
    assert_true(config_corpus(&config).min_rating == -INFINITY);
    assert_true(config.checkpoint_seconds == 1800 && config.checkpoint_steps == 0 && !config.checkpoint_epochs);
    config_release(&config);
}

static void auto_on_adjacency(void **state) {
    RESOLVES("[corpus]\nformat = adjacency\n");
    assert_int_equal(config.corpus_min_count, 1);
    assert_int_equal(config.examples_mode, MODE_ADJACENCY);
    assert_true(config.examples_subsample == 0 && config.examples_positives == 0 && config.negatives_count == 5);
    assert_int_equal(config.examples_targets, TARGETS_ONE);
    assert_int_equal(config.examples_short, SHORT_REPEAT);
    assert_int_equal(config.negatives_law, NOISE_UNIGRAM);
    assert_int_equal(config.optimizer_rule, RULE_ADAGRAD);
    assert_true(config.optimizer_lr == 0.05);
    assert_int_equal(config.train_loss, LOSS_LOGISTIC);
    assert_int_equal(config.train_epochs, 120);
    config_release(&config);
}

static void auto_on_lists(void **state) {
    static const char *const formats[] = {"lists", "pairs"};
    for (int i = 0; i < 4; i++) {
        int user = i < 2;
        char text[128];
        snprintf(text, sizeof text, "[corpus]\nformat = %s\n%s", formats[i % 2], user ? "" : "[examples]\nmode = list\n");
        RESOLVES(text);
        assert_int_equal(config.corpus_min_count, 1);
        assert_int_equal(config.examples_mode, user ? MODE_USER : MODE_LIST);
        assert_int_equal(config_corpus(&config).list_rows, user);
        assert_true(config.examples_subsample == 0);
        assert_int_equal(config.examples_shuffle, 1);
        assert_int_equal(config.examples_shuffle_items, 0);
        assert_int_equal(config.examples_positives, user ? 0 : 4);
        assert_int_equal(config.negatives_per, PER_EXAMPLE);
        assert_int_equal(config.negatives_law, user ? NOISE_UNIFORM : NOISE_UNIGRAM);
        assert_true(user ? config.negatives_count > 5 : config.negatives_count == 5);
        assert_int_equal(config.train_update, UPDATE_BATCH);
        assert_int_equal(config.train_loss, user ? LOSS_SOFTMAX : LOSS_LOGISTIC);
        assert_int_equal(config.train_score, user ? SCORE_COSINE : SCORE_DOT);
        assert_int_equal(config.optimizer_rule, user ? RULE_ADAM : RULE_ADAGRAD);
        assert_true(user ? config.optimizer_lr < 0.01 : config.optimizer_lr == 0.25);
        assert_int_equal(config.optimizer_schedule, SCHEDULE_LINEAR);
        assert_true(user ? config.train_epochs > 10 : config.train_epochs == 10);
        assert_int_equal(config.examples_targets, user ? TARGETS_ONE : TARGETS_ALL);
        assert_int_equal(config.examples_short, user ? SHORT_REPEAT : SHORT_SKIP);
        config_release(&config);
    }
    RESOLVES("[corpus]\nformat = lists\n[examples]\nmode = window\n");
    assert_int_equal(config.examples_shuffle, 0);
    assert_int_equal(config.examples_shuffle_items, 1);
    assert_int_equal(config.negatives_per, PER_EXAMPLE);
    config_release(&config);
}

/* Lists get no rows of their own if they have no names, or if a key is set that needs examples.mode = list. */
static void lists_that_have_no_rows(void **state) {
    char encoded[512], ids[256];
    static char header[] = CORPUS_STREAM_MAGIC " and ids";
    snprintf(ids, sizeof ids, "%s", scratch_text("made.ids", header));
    snprintf(encoded, sizeof encoded, "[corpus]\nformat = lists\npath = \"%s\"\n", ids);
    const char *const all[] = {encoded, "[corpus]\nformat = lists\n[train]\nupdate = hogwild\n[optimizer]\nrule = sgd\n",
                               "[corpus]\nformat = pairs\n[examples]\ntargets = one\n"};
    for (int i = 0; i < 3; i++) {
        RESOLVES(all[i]);
        assert_int_equal(config.examples_mode, MODE_LIST);
        config_release(&config);
    }
}

/* A run is named after its config file; without one, after its corpus. Its directory is always in runs/. */
static void a_run_is_called_by_its_file_or_its_corpus(void **state) {
    static const char *const corpora[][2] = {{"", "runs/run"},
                                             {"books", "runs/books"},
                                             {"a/b/books.csv.gz", "runs/books"},
                                             {"x.txt y.txt", "runs/x"},
                                             {"texts/", "runs/texts"},
                                             {"\"my books.tsv\"", "runs/my books"},
                                             {"a.b.txt.zst", "runs/a.b"},
                                             {"a.b.txt.xz", "runs/a.b"},
                                             {"a.bz2", "runs/a"},
                                             {".", "runs/run"},
                                             {"..", "runs/run"},
                                             {"../..", "runs/run"},
                                             {"/", "runs/run"},
                                             {"...txt", "runs/run"},
                                             {".gz", "runs/.gz"},
                                             {"papers.ids", "runs/papers"},
                                             {"...", "runs/..."}};
    static const char *const files[][2] = {{"one.ini", "runs/one"}, {"two", "runs/two"},      {"..ini", "runs/run"},
                                           {"...ini", "runs/run"},  {".ini", "runs/.ini"}};
    struct config c;
    for (size_t i = 0; i < sizeof corpora / sizeof *corpora; i++) {
        assert_int_equal(config_init(&c), 0);
        assert_int_equal(config_set(&c, "corpus", "path", corpora[i][0], "here"), 0);
        assert_int_equal(config_resolve(&c), 0);
        assert_string_equal(c.run_dir, corpora[i][1]);
        config_release(&c);
    }
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        assert_int_equal(config_init(&c), 0);
        assert_int_equal(config_read(&c, scratch_text(files[i][0], "")), 0);
        assert_int_equal(config_resolve(&c), 0);
        assert_string_equal(c.run_dir, files[i][1]);
        config_release(&c);
    }
    assert_int_equal(config_init(&c), 0);
    assert_int_equal(config_read(&c, scratch_text("one.ini", "[corpus]\npath = books.txt\n[run]\ndir = own\n")), 0);
    assert_int_equal(config_resolve(&c), 0);
    assert_string_equal(c.run_dir, "own");
    config_release(&c);
}

static void auto_of_the_rules(void **state) {
    static const struct {
        const char *rule;
        double lr, eps, decay;
    } rules[] = {{"sgd", 0.025, 1e-8, 0},        {"adagrad", 0.01, 1e-10, 0}, {"adadelta", 1, 1e-6, 0},
                 {"rmsprop", 0.01, 1e-8, 0},     {"adam", 1e-3, 1e-8, 0},     {"adamw", 1e-3, 1e-8, 0.01},
                 {"sparse-adam", 1e-3, 1e-8, 0}, {"adamax", 2e-3, 1e-8, 0},   {"asgd", 0.01, 1e-8, 0},
                 {"rprop", 0.01, 1e-8, 0},        {"rowwise-adagrad", 0.01, 1e-8, 0}};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        char text[64];
        snprintf(text, sizeof text, "[optimizer]\nrule = %s\n", rules[i].rule);
        RESOLVES(text);
        assert_true(config.optimizer_lr == rules[i].lr);
        assert_true(config.optimizer_eps == rules[i].eps);
        assert_true(config.optimizer_weight_decay == rules[i].decay);
        assert_true(config.optimizer_alpha == (strcmp(rules[i].rule, "asgd") ? 0.99 : 0.75));
        assert_int_equal(config.optimizer_schedule, i ? SCHEDULE_CONSTANT : SCHEDULE_LINEAR);
        assert_int_equal(config.train_update, i ? UPDATE_BATCH : UPDATE_HOGWILD);
        config_release(&config);
    }
}

/* The learning rate and schedule for lists become defaults only if the rule is chosen automatically. A rule that the user sets brings its own. */
static void a_named_rule_brings_its_own_rate(void **state) {
    RESOLVES("[corpus]\nformat = lists\n[optimizer]\nrule = adagrad\n[examples]\ntargets = one\n[train]\nepochs = 3\n");
    assert_true(config.optimizer_lr == 0.01);
    assert_int_equal(config.optimizer_schedule, SCHEDULE_CONSTANT);
    assert_int_equal(config.examples_targets, TARGETS_ONE);
    assert_int_equal(config.train_epochs, 3);
    config_release(&config);
}

static void a_rate_that_is_set_stays_with_any_rule(void **state) {
    RESOLVES("[corpus]\nformat = adjacency\n[optimizer]\nrule = auto\nlr = 0.125\nschedule = constant\n");
    assert_int_equal(config.optimizer_rule, RULE_ADAGRAD);
    assert_true(config.optimizer_lr == 0.125);
    assert_int_equal(config.optimizer_schedule, SCHEDULE_CONSTANT);
    config_release(&config);
}

static void what_is_set_is_kept(void **state) {
    RESOLVES("[optimizer]\nrule = adam\nlr = 0.5\neps = 0.25\nweight_decay = 0.125\nschedule = "
             "cosine\n[corpus]\nmin_count = 2\n"
             "[examples]\nsubsample = 0\nshuffle = yes\n[negatives]\nper = pair\n[run]\ndir = here\n[train]\nupdate "
             "= batch\n");
    assert_true(config.optimizer_lr == 0.5 && config.optimizer_eps == 0.25 && config.optimizer_weight_decay == 0.125);
    assert_int_equal(config.optimizer_schedule, SCHEDULE_COSINE);
    assert_int_equal(config.corpus_min_count, 2);
    assert_true(config.examples_subsample == 0);
    assert_int_equal(config.examples_shuffle, 1);
    assert_int_equal(config.negatives_per, PER_PAIR);
    assert_string_equal(config.run_dir, "here");
    config_release(&config);
}

/* The loss decides the defaults of train.score and model.context_init. */
static void auto_of_the_losses(void **state) {
    static const struct {
        const char *keys;
        int loss, score;
        double temperature, margin, weight;
        const char *init;
    } all[] = {{"", LOSS_LOGISTIC, SCORE_DOT, 1, 0, 1, "zeros"},
               {"loss = softmax", LOSS_SOFTMAX, SCORE_COSINE, 0.1, 0, 1, "word2vec"},
               {"loss = softmax\nscore = dot", LOSS_SOFTMAX, SCORE_DOT, 1, 0, 1, "zeros"},
               {"loss = bpr", LOSS_BPR, SCORE_DOT, 1, 0, 1, "zeros"},
               {"score = cosine\ntemperature = 0.5", LOSS_LOGISTIC, SCORE_COSINE, 0.5, 0, 1, "word2vec"},
               {"loss = contrastive", LOSS_CONTRASTIVE, SCORE_COSINE, 1, 0.8, 150, "word2vec"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char text[128];
        snprintf(text, sizeof text, "[corpus]\nformat = lists\n[examples]\nmode = list\n[train]\n%s\n", all[i].keys);
        RESOLVES(text);
        assert_int_equal(config.train_loss, all[i].loss);
        assert_int_equal(config.train_score, all[i].score);
        assert_true(config.train_temperature == all[i].temperature);
        assert_true(config.train_margin == all[i].margin);
        assert_true(config.train_negative_weight == all[i].weight);
        assert_true(config.train_negative_power == 0);
        assert_string_equal(config.model_context_init, all[i].init);
        config_release(&config);
    }
}

/* Runs of several ranks have train.update = batch, and if their rule is sgd also a bound on the sums of gradients (optimizer.clip). */
static void sums_of_sgd_are_bounded(void **state) {
    static const struct {
        const char *keys;
        int update;
        double clip;
    } all[] = {{"[device]\nranks = 1\n", UPDATE_HOGWILD, 0},
               {"[device]\nranks = 3\n", UPDATE_BATCH, 30},
               {"[device]\nranks = 3\n[optimizer]\nclip = 5\n", UPDATE_BATCH, 5},
               {"[device]\nranks = 3\n[optimizer]\nclip = 0\n", UPDATE_BATCH, 0},
               {"[device]\nranks = 3\n[optimizer]\nrule = adagrad\n", UPDATE_BATCH, 0},
               {"[device]\nranks = 3\n[corpus]\nformat = lists\n", UPDATE_BATCH, 0},
               {"[device]\nranks = 3\n[train]\nupdate = batch\n", UPDATE_BATCH, 30},
               {"[train]\nupdate = batch\n", UPDATE_BATCH, 30},
               {"[train]\nupdate = batch\n[optimizer]\nclip = 0\n", UPDATE_BATCH, 0},
               {"[train]\nupdate = batch\nreduction = mean\n", UPDATE_BATCH, 0},
               {"[corpus]\nformat = documents\n[examples]\nmode = cbow\n[train]\nupdate = batch\n", UPDATE_BATCH, 30},
               {"[corpus]\nformat = lists\n[optimizer]\nrule = sgd\n", UPDATE_BATCH, 30},
               {"[optimizer]\nclip = 5\n", UPDATE_BATCH, 5}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        RESOLVES(all[i].keys);
        assert_int_equal(config.train_update, all[i].update);
        assert_true(config.optimizer_clip == all[i].clip);
        config_release(&config);
    }
}

static void auto_of_means_and_cosines_of_text(void **state) {
    const char *keys = "[train]\nscore = cosine\n";
    for (int cbow = 0; cbow < 2; cbow++, keys = "[examples]\nmode = cbow\n") {
        RESOLVES(keys);
        assert_int_equal(config.train_update, cbow ? UPDATE_HOGWILD : UPDATE_BATCH);
        config_release(&config);
    }
    RESOLVES("[examples]\nmode = cbow\n");
    assert_int_equal(config.train_update, UPDATE_HOGWILD);
    assert_int_equal(config.negatives_per, PER_EXAMPLE);
    assert_true(config.examples_subsample == 1e-4 && config_is_window(&config));
    config_release(&config);
}

static void the_gradient_and_rate_of_means(void **state) {
    static const struct {
        const char *keys;
        int gradient;
        double lr;
    } all[] = {{"", POOLED_MEAN, 0.025},
               {"[examples]\nmode = cbow\n", POOLED_WHOLE, 0.06},
               {"[examples]\nmode = cbow\npooled_gradient = mean\n", POOLED_MEAN, 0.06},
               {"[examples]\nmode = cbow\n[optimizer]\nlr = 0.25\n", POOLED_WHOLE, 0.25},
               {"[examples]\nmode = cbow\n[optimizer]\nrule = adagrad\n", POOLED_WHOLE, 0.01}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        RESOLVES(all[i].keys);
        assert_int_equal(config.examples_pooled_gradient, all[i].gradient);
        assert_true(config.optimizer_lr == all[i].lr);
        config_release(&config);
    }
}

/* Lock-free training of tables with frozen rows works on the CPU only. */
static void what_the_cpu_alone_trains(void **state) {
    static const struct {
        const char *keys, *why;
    } all[] = {{"[examples]\nmode = cbow\n", NULL},
               {"[examples]\nmode = cbow\n[optimizer]\nrule = adagrad\n[train]\nupdate = hogwild\n", NULL},
               {"[examples]\nmode = cbow\n[train]\nupdate = batch\n", NULL},
               {"[examples]\nmode = cbow\n[train]\nheld_out = 0.1\n", NULL},
               {"[examples]\nmode = cbow\n[train]\nfreeze = context\n", "train.freeze"},
               {"[train]\nupdate = batch\nfreeze = context\n", NULL},
               {"[train]\nheld_out = 0.1\n", NULL},
               {"[train]\nupdate = batch\n", NULL}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char why[HOGWILD_WHY];
        RESOLVES(all[i].keys);
        assert_int_equal(config_refuses_hogwild(&config, 0, why), 0);
        assert_int_equal(config_refuses_hogwild(&config, 1, why), all[i].why != NULL);
        if (all[i].why) assert_non_null(strstr(why, all[i].why));
        config_release(&config);
    }
}

/* train.effort = thorough keeps the values of keys that the user has set, and does not share negatives if such a key excludes it. */
static void auto_of_a_thorough_run(void **state) {
    static const struct {
        const char *keys;
        uint64_t dim, epochs; /* 0: the default of train.effort = thorough */
        int per;
    } all[] = {{"", 0, 0, PER_BATCH},
               {"epochs = 3\n[model]\ndim = 8\n", 8, 3, PER_BATCH},
               {"loss = bpr\n", 0, 0, PER_EXAMPLE},
               {"[examples]\nown = 0.5\n", 0, 0, PER_EXAMPLE},
               {"[examples]\npositives = 3\n", 0, 0, PER_EXAMPLE},
               {"[examples]\ntargets = one\nmode = user\n", 0, 0, PER_EXAMPLE},
               {"[negatives]\nper = example\n", 0, 0, PER_EXAMPLE}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char text[256];
        static const char thorough[] = "[corpus]\nformat = lists\n[device]\nbackend = cpu\n[train]\neffort = thorough\n";
        snprintf(text, sizeof text, "%s%s", thorough, all[i].keys);
        RESOLVES(text);
        assert_int_equal(config.examples_mode, MODE_USER);
        assert_int_equal(config.negatives_per, all[i].per);
        assert_int_equal(config.examples_targets, all[i].per == PER_BATCH ? TARGETS_ALL : TARGETS_ONE);
        assert_int_equal(config.model_dim, all[i].dim ? all[i].dim : 256);
        assert_int_equal(config.train_epochs, all[i].epochs ? all[i].epochs : 60);
        config_release(&config);
    }
    REFUSES("[train]\nloss = softmax\nnegative_weight = 0\n", "train.negative_weight = 0");
    REFUSES("[train]\neffort = thorough\n", "train.effort = thorough is for examples.mode = user, walk and triple, whose defaults it changes, and the mode is window");
    RESOLVES("[corpus]\nformat = graph\n[train]\neffort = thorough\n");
    assert_int_equal(config.train_effort, EFFORT_THOROUGH);
    config_release(&config);
}

static void a_processor_is_quick_with_graphs(void **state) {
    RESOLVES("[corpus]\nformat = graph\n[device]\nbackend = cpu\n");
    assert_int_equal(config.train_effort, EFFORT_QUICK);
    config_release(&config);
}

static void a_processor_is_quick(void **state) {
    RESOLVES("[corpus]\nformat = lists\n[device]\nbackend = cpu\n");
    assert_int_equal(config.train_effort, EFFORT_QUICK);
    assert_int_equal(config.model_dim, 128);
    assert_int_equal(config.train_epochs, 20);
    assert_int_equal(config.negatives_per, PER_EXAMPLE);
    assert_true(config.train_negative_power == 1.15);
    config_release(&config);
}

/* Runs of versions that had no key train.effort were quick. They stay quick when they are resumed, whatever the default is now. */
static void an_earlier_version_was_quick(void **state) {
    struct config config;
    char older[] = "[corpus]\nformat = lists\n[model]\ndim = 128\n";
    char newer[] = "[corpus]\nformat = lists\n[train]\neffort = thorough\n";
    assert_int_equal(config_init(&config), 0);
    assert_int_equal(config_read_text(&config, older, "config.ini"), 0);
    config_fill_older(&config);
    assert_int_equal(config.train_effort, EFFORT_QUICK);
    assert_int_equal(config_resolve(&config), 0);
    assert_true(config.train_negative_power == 0);
    config_release(&config);
    assert_int_equal(config_init(&config), 0);
    assert_int_equal(config_read_text(&config, newer, "config.ini"), 0);
    config_fill_older(&config);
    assert_int_equal(config.train_effort, EFFORT_THOROUGH);
    config_release(&config);
}

/* train.update = auto becomes hogwild only if lock-free training supports the values of all other keys. */
static void auto_update_picks_what_works(void **state) {
    static const char *const batches[] = {"[optimizer]\nmomentum = 0.9\n", "[train]\nreduction = mean\n",
                                          "[corpus]\nformat = lists\n", "[optimizer]\nrule = adagrad\n",
                                          "[optimizer]\nclip = 20\n"};
    for (int i = 0; i < 5; i++) {
        RESOLVES(batches[i]);
        assert_int_equal(config.train_update, UPDATE_BATCH);
        config_release(&config);
    }
    RESOLVES("[train]\nupdate = hogwild\nheld_out = 0.1\n[optimizer]\nrule = adagrad\n");
    assert_int_equal(config.train_update, UPDATE_HOGWILD);
    config_release(&config);
}

/* An option that this rule does not read gets a warning and is not refused, so that one file can serve runs with several rules. */
static void an_option_of_another_rule_is_let_through(void **state) {
    RESOLVES("[optimizer]\nrule = adam\nmomentum = 0.9\nnesterov = yes\nrho = 0.5\nstep_min = 100\n[corpus]\nformat = "
             "lists\n");
    assert_true(config.optimizer_momentum == 0.9);
    config_release(&config);
}

static void checkpoint_times_are_taken_apart(void **state) {
    static const struct {
        const char *text;
        double seconds;
        uint64_t steps;
        int epochs;
        double share; /* largest share of the time that writing may take; used only with checkpoint_every = auto */
    } all[] = {{"end", 0, 0, 0, 0},          {"10m", 600, 0, 0, 0},  {"90 s", 90, 0, 0, 0}, {"5000 steps", 0, 5000, 0, 0},
               {"1e3 steps", 0, 1000, 0, 0}, {"1 step", 0, 1, 0, 0}, {"epoch", 0, 0, 1, 0}, {"epoch, 2h", 7200, 0, 1, 0},
               {"auto", 1800, 0, 0, 0.03},   {"auto, 10m", 600, 0, 0, 0}, {"10m, auto", 600, 0, 0, 0},
               {"epoch, auto", 1800, 0, 1, 0.03}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char text[64];
        snprintf(text, sizeof text, "[run]\ncheckpoint_every = %s\n", all[i].text);
        RESOLVES(text);
        assert_true(config.checkpoint_seconds == all[i].seconds);
        assert_true(config.checkpoint_share == all[i].share);
        assert_int_equal(config.checkpoint_steps, all[i].steps);
        assert_int_equal(config.checkpoint_epochs, all[i].epochs);
        config_release(&config);
    }
    static const char *const wrong[] = {"0m",       "0 steps", "-1 steps", "1.5 steps", "steps",
                                        "5 epochs", "10m,",    "",         "often"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char text[64];
        snprintf(text, sizeof text, "[run]\ncheckpoint_every = %s\n", wrong[i]);
        REFUSES(text, "line 2", "run.checkpoint_every");
    }
}

static void auto_on_means_of_items(void **state) {
    static const struct {
        const char *keys;
        uint64_t pooled;
    } all[] = {{"", 0},          {"pooled = 0", 0},           {"own = 0.5", 100},
               {"own = 0", 100}, {"own = 0\npooled = 0", 0}, {"own = 0\npooled = 9", 9}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char text[128];
        snprintf(text, sizeof text, "[corpus]\nformat = lists\n[examples]\n%s\n", all[i].keys);
        RESOLVES(text);
        assert_int_equal(config.examples_pooled, all[i].pooled);
        assert_int_equal(config.examples_positives, 0);
        config_release(&config);
    }
}

static void edges_are_read_as_their_keys_say(void **state) {
    RESOLVES("[corpus]\nformat = graph\n[graph]\ndirected = yes\nweights = no\n");
    assert_true(config_corpus(&config).directed && config_corpus(&config).weights == WEIGHTS_NO);
    config_release(&config);
}

/* Each item of a list is an example: negatives.per = batch needs this. */
static void auto_of_shared_negatives(void **state) {
    static const char *const all[] = {"[negatives]\nper = batch\n", "[examples]\nmode = user\ntargets = all\n",
                                      "[negatives]\nper = batch\n[examples]\ntargets = all\n"};
    for (int i = 0; i < 3; i++) {
        char text[128];
        snprintf(text, sizeof text, "[corpus]\nformat = lists\n%s", all[i]);
        RESOLVES(text);
        assert_int_equal(config.examples_mode, MODE_USER);
        assert_int_equal(config.examples_targets, TARGETS_ALL);
        assert_int_equal(config.examples_positives, 1);
        assert_int_equal(config.negatives_per, i == 1 ? PER_EXAMPLE : PER_BATCH);
        assert_int_equal(config.negatives_count, i == 1 ? 1000 : 8192);
        assert_true(config.optimizer_lr == (i == 1 ? 0.002 : 0.001));
        assert_int_equal(config.train_loss, LOSS_SOFTMAX);
        assert_true(config_is_by_item(&config));
        config_release(&config);
    }
}

#define TRIPLES "[corpus]\nformat = triples\n[device]\nbackend = cpu\n"
static void auto_of_triples(void **state) {
    RESOLVES(TRIPLES);
    assert_int_equal(config.examples_mode, MODE_TRIPLE);
    assert_int_equal(config.negatives_per, PER_BATCH);
    assert_true(config.negatives_count == COUNT_ALL);
    assert_int_equal(config.train_loss, LOSS_SOFTMAX);
    assert_int_equal(config.train_score, SCORE_DOT);
    assert_int_equal(config.optimizer_rule, RULE_ADAGRAD);
    assert_int_equal(config.optimizer_schedule, SCHEDULE_LINEAR);
    assert_int_equal(config.train_update, UPDATE_BATCH);
    assert_int_equal(config.model_tied, 1);
    assert_int_equal(config.device_matmul, MATMUL_TF32);
    assert_true(config.train_n3 == 0.05 && config.optimizer_lr == 0.1 && config.train_temperature == 1);
    assert_string_equal(config.model_target_init, "normal 0 0.001");
    assert_string_equal(config.model_context_init, "normal 0 0.001");
    assert_true(config_loss(&config).cubes == 0.05f);
    char *count = config_value(&config, "negatives", "count");
    assert_string_equal(count, "all");
    free(count);
    config_release(&config);
}

static void refuses_what_triples_have_not(void **state) {
    REFUSES(TRIPLES "[corpus]\nmax_sentence = 7\n", "corpus.max_sentence = 7", "corpus.format is triples; leave it out");
    REFUSES(TRIPLES "[examples]\nmode = walk\npositives = 9\n", "examples.positives = 9 is for lists", "examples.mode is walk; leave it out");
    REFUSES("[corpus]\nformat = documents\n[examples]\npositives = 9\n", "examples.positives = 9 is for lists", "examples.mode is user");
    REFUSES(TRIPLES "[examples]\nmode = user\n", "examples.mode = user with corpus.format = triples");
    REFUSES("[examples]\nmode = triple\n", "examples.mode = triple with corpus.format = text", "corpus.format = triples");
    REFUSES(TRIPLES "[model]\ndim = 25\n", "model.dim = 25 is odd", "set it to 26", "train.product = real");
    REFUSES(TRIPLES "[negatives]\nper = example\n", "negatives.per = example", "the whole batch");
    REFUSES(TRIPLES "[train]\nloss = bpr\n", "softmax and logistic", "it is bpr");
    REFUSES(TRIPLES "[train]\nupdate = hogwild\n", "train.update = batch");
    REFUSES(TRIPLES "[train]\nheld_out_items = 0.1\n", "train.held_out_items = 0.1", "corpus.format is triples");
    REFUSES(TRIPLES "[train]\npatience = 2\n", "train.held_out = 0.01");
    REFUSES(TRIPLES "[negatives]\ncount = 0\n[train]\nloss = logistic\n", "negatives.count = 0", "no negatives to share");
    REFUSES(TRIPLES "[examples]\npositives = 2\n", "examples.positives is for lists");
    REFUSES(TRIPLES "ranks = 2\n[train]\nscore = cosine\n", "train.score = cosine is trained by one process", "there are 2", "train.score = dot");
    REFUSES(TRIPLES "ranks = 4\n[model]\ndim = 6\n", "model.dim = 6 makes 3 complex numbers", "train.product = complex", "share them out, 4");
    REFUSES("[negatives]\ncount = all\n", "negatives.count = all", "it is window");
    REFUSES("[train]\nproduct = real\n", "train.product = real", "it is window");
    REFUSES("[train]\nproduct = translation\n", "train.product = translation", "it is window");
    REFUSES("[train]\nrelations = 1\n", "train.relations = 1", "it is window");
    REFUSES("[train]\nscore = distance\n", "train.score = distance", "rotation or translation");
    REFUSES("[train]\nadversarial = 1\n", "train.adversarial = 1", "negatives.per = batch");
    REFUSES(TRIPLES "[train]\nadversarial = 1\n", "train.adversarial = 1", "they are softmax and batch");
    REFUSES(TRIPLES "[train]\nscore = distance\n", "train.score = distance", "rotation or translation");
    REFUSES(TRIPLES "[train]\nproduct = rotation\nscore = dot\n", "train.score = dot", "rotation or translation");
    REFUSES(TRIPLES "[train]\nproduct = translation\nn3 = 0.1\n", "train.n3 = 0.1", "translation has no penalty");
    REFUSES(TRIPLES "[train]\nproduct = translation\nmargin = 2\n", "train.margin = 2", "it is softmax");
    REFUSES(TRIPLES "[train]\nscore = cosine\nrelations = 1\n", "train.relations = 1", "train.score is cosine");
    REFUSES(TRIPLES "[model]\ncontext_init = zeros\n", "model.context_init = zeros", "rows of heads");
    REFUSES(TRIPLES "[model]\ntarget_init = zeros\n[train]\nproduct = real\n", "model.target_init = zeros", "rows of heads");
    REFUSES(TRIPLES "[model]\ntarget_init = zeros\n[train]\nproduct = rotation\n", "model.target_init = zeros", "rows of relations");
    REFUSES(TRIPLES "[model]\ntarget_init = zeros\ncontext_init = zeros\n[train]\nproduct = translation\n", "model.context_init = zeros");
    REFUSES(TRIPLES "[model]\ndim = 25\n[train]\nproduct = rotation\n", "model.dim = 25 is odd", "train.product = rotation");
    REFUSES(TRIPLES "[model]\nrelation_init = zeros\n[train]\nproduct = rotation\n", "model.relation_init = zeros", "rows of relations");
    REFUSES("[model]\nrelation_init = normal 0 1\n", "model.relation_init = 'normal 0 1'", "it is window");
    REFUSES(TRIPLES "[train]\nn3 = 0\nn3_warmup = 0.2\n", "train.n3_warmup = 0.2", "which is 0");
    REFUSES("[model]\ntied = yes\n", "model.tied = yes", "it is window");
    REFUSES("[train]\nn3 = 0.1\n", "train.n3 = 0.1", "it is window");
    REFUSES("[model]\ndim = all\n", "model.dim");
}

#define LISTS "[corpus]\nformat = lists\n"
static void refuses_what_shares_no_negatives(void **state) {
    static const char *const shared = "[negatives]\nper = batch\n";
    static const struct {
        const char *keys, *why, *is;
    } all[] = {{"[corpus]\nformat = text\n", "negatives.per = batch", "window"},
               {LISTS "[examples]\nmode = list\n", "negatives.per = batch", "list and all"},
               {LISTS "[examples]\ntargets = one\nmode = user\n", "examples.targets = all", "user and one"},
               {LISTS "[train]\nloss = bpr\n", "train.loss = softmax and logistic", "it is bpr"},
               {LISTS "[train]\nupdate = hogwild\n[optimizer]\nrule = sgd\n[examples]\nmode = user\n", "train.update = batch",
                "all"},
               {LISTS "[device]\nranks = 2\n", "one process", "there are 2"},
               {LISTS "[examples]\nown = 0.5\n", "examples.own = 0.5", "examples.targets = all"},
               {LISTS "[examples]\npositives = 4\n", "its one positive", "examples.positives"},
               {LISTS "[examples]\nreplacement = yes\n", "its one positive", "examples.replacement"},
               {LISTS "[negatives]\ncount = 0\n", "negatives.per = batch", "negatives.count = 0"},
               {LISTS "[train]\nbatch = 300000\n", "train.batch = 300000", "2^31"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char text[256];
        snprintf(text, sizeof text, "%s%s", all[i].keys, shared);
        REFUSES(text, all[i].why, all[i].is);
    }
}

static void refuses_keys_of_several_gpus_for_one(void **state) {
    REFUSES("[device]\nshare = copies\n", "device.share = copies", "device.gpus is 0");
    REFUSES("[device]\ngpus = 1\nshare = columns\n", "device.share = columns", "device.gpus is 1");
    REFUSES("[train]\nmerge_every = 1000\n", "train.merge_every = 1000", "device.gpus asks for none");
    REFUSES("[device]\ngpus = 2\nshare = columns\n[train]\nmerge_every = 1000\n", "train.merge_every = 1000", "device.share is columns");
    RESOLVES("[device]\ngpus = 2\n[train]\nmerge_every = 1000\n");
    config_release(&config);
}

static void refuses_what_cannot_work(void **state) {
    REFUSES("[train]\nepochs = 0\n", "train.epochs = 0", "train.steps = 0");
    REFUSES("[train]\nupdate = hogwild\n[optimizer]\nrule = adam\n", "hogwild", "sgd or adagrad", "adam",
            "train.update = batch");
    REFUSES("[train]\nupdate = hogwild\n[optimizer]\nmomentum = 0.9\n", "hogwild", "momentum is 0.9");
    REFUSES("[train]\nupdate = hogwild\nreduction = mean\n", "hogwild", "reduction");
    REFUSES("[train]\nupdate = hogwild\nloss = softmax\n", "hogwild", "softmax of cosine");
    REFUSES("[device]\nranks = 2\n[train]\nupdate = hogwild\n", "hogwild", "2 ranks", "train.update = batch");
    REFUSES("[device]\nranks = 2\n[optimizer]\nrule = rowwise-adagrad\n", "rowwise-adagrad", "2 ranks", "rule = adagrad");
    REFUSES("[train]\nupdate = hogwild\n[optimizer]\nrule = rowwise-adagrad\n", "hogwild", "it is rowwise-adagrad");
    REFUSES("[optimizer]\nrule = rowwise-adagrad\nweight_decay = 0.1\n", "weight_decay = 0.1", "use adagrad");
    REFUSES("[train]\nupdate = hogwild\n[optimizer]\nclip = 20\n", "optimizer.clip = 20", "hogwild");
    REFUSES("[examples]\nmode = adjacency\n", "adjacency", "corpus.format is text");
    REFUSES("[corpus]\nformat = lists\n[examples]\nsubsample = 1e-3\n", "examples.subsample = 0.001", "it is user");
    REFUSES("[corpus]\nformat = lists\n[examples]\npositives = 0\nreplacement = yes\n", "replacement", "positives = 0");
    REFUSES("[corpus]\nmin_rating = 3\n", "corpus.min_rating = 3", "pairs", "it is text");
    REFUSES("[corpus]\nformat = graph\nmin_rating = 3\n", "corpus.min_rating = 3", "pairs", "it is graph");
    REFUSES("[graph]\ndirected = yes\n", "graph.directed = yes", "corpus.format = graph", "it is text");
    REFUSES("[graph]\nweights = no\n", "graph.weights = no", "corpus.format = graph", "it is text");
    REFUSES("[triples]\nreciprocal = no\n", "triples.reciprocal = no", "corpus.format = triples", "it is text");
    REFUSES("[corpus]\nformat = lists\n[examples]\nmode = list\nown = 0.5\n", "examples.own = 0.5", "it is list");
    REFUSES("[corpus]\nformat = lists\n[examples]\nown = 0.5\npositives = 4\nreplacement = yes\n", "examples.own = 0.5",
            "replacement");
    REFUSES("[corpus]\nformat = lists\n[examples]\npooled = 7\n", "examples.pooled = 7", "examples.own = 1");
    REFUSES("[corpus]\nformat = lists\nweights = log\n", "corpus.weights = log needs corpus.format = pairs", "it is lists");
    REFUSES("[corpus]\nformat = graph\nweights = linear\n", "corpus.weights = linear", "graph.weights weighs edges");
    REFUSES("[corpus]\nformat = pairs\nweights = log\n[examples]\nmode = window\n", "corpus.weights = log", "the mode is window");
    REFUSES("[corpus]\nformat = pairs\nweights = log\n[train]\nupdate = hogwild\n[optimizer]\nrule = sgd\n",
            "train.update = hogwild trains all pairs alike", "set train.update = batch, or corpus.weights = none");
    REFUSES("[corpus]\nformat = adjacency\n[examples]\ntargets = all\n", "examples.targets = all", "it is adjacency");
    REFUSES("[examples]\ntargets = all\n", "examples.targets = all", "it is window");
    REFUSES("[optimizer]\nnesterov = yes\n", "nesterov", "momentum");
    REFUSES("[optimizer]\nrule = adam\nbeta2 = 1\n", "beta2 = 1", "below 1");
    REFUSES("[optimizer]\nrule = sparse-adam\nweight_decay = 0.1\n", "weight_decay = 0.1", "sparse-adam");
    REFUSES("[optimizer]\nrule = rprop\nstep_min = 2\nstep_max = 1\n", "step_min = 2", "step_max = 1");
    RESOLVES("[corpus]\nformat = pairs\nmin_rating = 3.5\n[train]\nepochs = 0\nsteps = 7\n[optimizer]\nmomentum = "
             "0.9\nnesterov = yes\n");
    assert_true(config_corpus(&config).min_rating == 3.5 && !config_corpus(&config).pair_weights && !config_loss(&config).weighted);
    assert_int_equal(config_set(&config, "corpus", "weights", "log", "test"), 0);
    assert_true(config_corpus(&config).pair_weights == PAIR_WEIGHTS_LOG && config_loss(&config).weighted);
    config_release(&config);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(void) {
    const struct CMUnitTest tests[] = {TEST(auto_on_text),
                                       TEST(auto_on_adjacency),
                                       TEST(auto_on_lists),
                                       TEST(lists_that_have_no_rows),
                                       TEST(a_run_is_called_by_its_file_or_its_corpus),
                                       TEST(auto_of_the_rules),
                                       TEST(a_named_rule_brings_its_own_rate),
                                       TEST(a_rate_that_is_set_stays_with_any_rule),
                                       TEST(what_is_set_is_kept),
                                       TEST(auto_of_the_losses),
                                       TEST(sums_of_sgd_are_bounded),
                                       TEST(auto_of_means_and_cosines_of_text),
                                       TEST(the_gradient_and_rate_of_means),
                                       TEST(what_the_cpu_alone_trains),
                                       TEST(auto_of_a_thorough_run),
                                       TEST(a_processor_is_quick),
                                       TEST(a_processor_is_quick_with_graphs),
                                       TEST(an_earlier_version_was_quick),
                                       TEST(auto_update_picks_what_works),
                                       TEST(an_option_of_another_rule_is_let_through),
                                       TEST(checkpoint_times_are_taken_apart),
                                       TEST(auto_on_means_of_items),
                                       TEST(edges_are_read_as_their_keys_say),
                                       TEST(auto_of_shared_negatives),
                                       TEST(auto_of_triples),
                                       TEST(refuses_what_triples_have_not),
        TEST(refuses_what_shares_no_negatives),
        TEST(refuses_keys_of_several_gpus_for_one),
        TEST(refuses_what_cannot_work)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
