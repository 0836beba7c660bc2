#include "run_graph.h"

#include "base/file.h"
#include "base/report.h"
#include "config/config.h"
#include "corpus/graph_file.h"

#include <stdlib.h>
#include <string.h>

int run_has_graph(const struct model *model) {
    return model->mode == MODE_WALK;
}

/* Reads the keys that the run was trained with. The caller releases them in any case. */
static int read_keys(struct config *config, const struct model *model) {
    *config = (struct config){.name = NULL};
    char *keys = file_join(model->directory, "config.ini");
    int result = keys && !config_init(config) && !config_read(config, keys) ? 0 : -1;
    free(keys);
    return result;
}

/* Returns the path of the run's graph, for the caller to free; NULL after fail(). */
static char *path_of(const struct model *model) {
    struct config config;
    char *path = NULL;
    if (!read_keys(&config, model)) path = file_join(*config.corpus_cache ? config.corpus_cache : model->directory, "corpus.graph");
    config_release(&config);
    return path;
}

/* Reads the header of the graph's file; all zeros if the file is shorter than a header. Returns 0, or -1 after fail(). */
static int read_header(const char *path, struct graph_header *header) {
    struct file_map map;
    *header = (struct graph_header){.fingerprint = 0};
    if (file_map_open(&map, path)) return -1;
    if (map.size >= sizeof *header) memcpy(header, map.data, sizeof *header);
    file_map_close(&map);
    return 0;
}

int run_graph_within(const struct model *model, uint64_t most) {
    struct graph_header header;
    char *path = path_of(model);
    int there = path ? file_exists(path) : -1;
    if (there > 0) there = read_header(path, &header) ? -1 : header.nodes + header.arcs <= most;
    free(path);
    return there;
}

/* Opens the graph's file, and checks that its checksum is the one in the checkpoint. */
static int open_path(struct graph *graph, const struct model *model, const char *path, struct pool *pool) {
    struct graph_header header; /* has the fingerprint to open the file with: the corpus' files, from which it could be computed,
                                 * may be gone */
    uint64_t trained = model->state.corpus.stream;
    int there = file_exists(path);
    if (there < 0) return -1;
    if (!there) return fail("'%s' is not there: it is the graph that '%s' was trained on", path, model->directory);
    if (read_header(path, &header) || graph_open(graph, path, header.fingerprint, model->rows, pool)) return -1;
    if (!trained || graph->checksum == trained) return 0;
    graph_close(graph);
    return fail("'%s' is not the graph that '%s' was trained on", path, model->directory);
}

int run_graph_open(struct graph *graph, const struct model *model, struct pool *pool) {
    *graph = (struct graph){0};
    if (!run_has_graph(model))
        return fail("'%s' was not trained on a graph (corpus.format = graph), and has none", model->directory);
    char *path = path_of(model);
    int result = path ? open_path(graph, model, path, pool) : -1;
    free(path);
    return result;
}

const struct backend_ops *run_graph_backend(const struct model *model) {
    struct config config;
    const struct backend_ops *ops = backend_without_gpu(), *named = NULL;
    if (!read_keys(&config, model)) {
        named = config_named_backend(&config);
        if (!named) named = backend_best();
    }
    config_release(&config);
    return named && named->present(NULL, 0) ? named : ops;
}
