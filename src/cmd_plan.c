#include "../kernels/backend.h"
#include "commands.h"
#include "examples.h"
#include "memory.h"
#include "planner.h"
#include "report.h"

#include <stdlib.h>

/* What a plan is made from. The corpus is counted and encoded as train does it, into the same files, so that a train
 * that follows begins at once. */
struct planned {
    struct pool *pool;
    struct corpus *corpus;
    struct vocab vocab;
    struct idstream stream;
    struct examples examples;
    const struct backend_ops *ops;
    struct backend *backend;
};

static void release(struct planned *p) {
    if (p->backend) p->ops->close(p->backend);
    examples_release(&p->examples);
    idstream_close(&p->stream);
    vocab_release(&p->vocab);
    corpus_close(p->corpus);
    pool_close(p->pool);
}

static int open_corpus(struct planned *p, const struct config *config) {
    char **paths;
    int64_t count = config_paths(config->corpus_path, &paths);
    if (count < 0) return -1;
    if (count == 0)
        fail("corpus.path is empty: say which files to read (corpus.path = FILE, or --corpus.path=FILE)");
    else
        p->corpus = corpus_open(paths, (uint64_t)count);
    for (int64_t i = 0; i < count; i++) free(paths[i]);
    free(paths);
    return p->corpus ? 0 : -1;
}

static int reuse_corpus(struct planned *p, const struct config *config, const char *ids, const char *words) {
    if (!file_exists(ids) || !file_exists(words)) return 0;
    if (!vocab_read(&p->vocab, words) &&
        idstream_reuse(&p->stream, ids, idstream_fingerprint(p->corpus, &p->vocab, config)))
        return 1;
    report_clear(); /* a cache that cannot be read is made anew */
    vocab_release(&p->vocab);
    return 0;
}

static int read_corpus(struct planned *p, const struct config *config) {
    const char *directory = *config->corpus_cache ? config->corpus_cache : config->run_dir;
    char *ids = file_join(directory, "corpus.ids"), *words = file_join(directory, "corpus.vocab.tsv");
    int result = -1, reused;
    if (!ids || !words || open_corpus(p, config)) goto out;
    if (!reuse_corpus(p, config, ids, words) &&
        (file_make_directory(directory) || vocab_build(&p->vocab, p->corpus, config, p->pool) ||
         vocab_write(&p->vocab, words) ||
         idstream_open(&p->stream, ids, p->corpus, &p->vocab, config, p->pool, &reused)))
        goto out;
    result = 0;
out:
    free(ids);
    free(words);
    return result;
}

static int open_backend(struct planned *p, const struct config *config, struct backend_info *machine) {
    struct backend_options options = {.threads = (unsigned)config->device_threads,
                                      .index = (unsigned)config->device_index,
                                      .depth = (unsigned)config->memory_depth,
                                      .gpu_budget = config->memory_gpu_budget};
    char why[256] = "";
    int cuda = config->device_backend != BACKEND_CPU && backend_cuda_present(why, sizeof why);
    if (config->device_backend == BACKEND_CUDA && !cuda) return fail("device.backend = cuda: %s", why);
    p->ops = cuda ? &backend_cuda : &backend_cpu;
    return p->ops->open(&p->backend, &options) || p->ops->info(p->backend, machine) ? -1 : 0;
}

static int print_plan(const struct config *config) {
    struct planned p = {0};
    struct backend_info machine;
    struct plan plan;
    int result = -1;
    if (!(p.pool = pool_open((unsigned)config->device_threads)) || read_corpus(&p, config) ||
        examples_init(&p.examples, config, &p.vocab, &p.stream) || open_backend(&p, config, &machine) ||
        planner_make(&plan, config, &p.vocab, &p.examples, &machine, p.ops == &backend_cuda))
        goto out;
    planner_print(&plan, config, 1);
    result = plan.fits ? 0 : fail("the run does not fit: %s", plan.advice);
out:
    release(&p);
    return result;
}

/* sptx-w2v plan CONFIG.ini [--section.key=value ...] */
int cmd_plan(int argc, char **argv) {
    const struct option options[] = {{0}};
    const char **texts = mem_zalloc(2 * (uint64_t)argc, sizeof *texts, "arguments"), **settings = texts + argc;
    struct config config = {0};
    int result = -1, setting_count;
    if (!texts) return -1;
    int given = command_arguments(argc, argv, options, texts, settings, &setting_count);
    if (given < 0) goto out;
    if (given != 1) {
        fail_usage("plan wants one configuration file, %d given; see 'sptx-w2v help plan'", given);
        goto out;
    }
    if (command_config(&config, texts[0], settings, setting_count)) goto out;
    result = print_plan(&config);
out:
    free(texts);
    config_release(&config);
    return result;
}
