/* config_corpus: gives the keys of [corpus] in the form that the modules of corpus/ take. */
#include "config_keys.h"

#include <math.h>
#include <string.h>

struct subword_form config_subwords(const struct config *config) {
    struct subword_form form = {.max = 0};
    if (!config->examples_subwords) return form; /* NULL only in a config that was not made by config_init() */
    subwords_read_lengths(config->examples_subwords, &form); /* cannot fail: set_text() has checked the text */
    subwords_read_buckets(config->model_buckets, &form);
    return form;
}

struct corpus_options config_corpus(const struct config *config) {
    double min_rating = -INFINITY;
    config_read_rating(config->corpus_min_rating, &min_rating); /* cannot fail: set_text() has checked the text */
    return (struct corpus_options){.path = config->corpus_path,
                                   .vocab = config->corpus_vocab,
                                   .format = config->corpus_format,
                                   .order = config->corpus_order,
                                   .look = {.header = config->corpus_header,
                                            .names = config->corpus_names,
                                            .separator = config->corpus_separator,
                                            .columns = strcmp(config->corpus_columns, "auto") ? config->corpus_columns : NULL,
                                            .no_values = config->graph_weights == WEIGHTS_NO},
                                   .phrases = {.joins = config->corpus_phrases,
                                               .score = config->phrases_score,
                                               .min_count = config->phrases_min_count,
                                               .passes = config->phrases_passes,
                                               .threshold = config->phrases_threshold,
                                               .delimiter = config->phrases_delimiter,
                                               .connectors = config->phrases_connectors,
                                               .memory = config->phrases_memory},
                                   .max_sentence = config->corpus_max_sentence,
                                   .max_word = config->corpus_max_word,
                                   .min_count = config->corpus_min_count,
                                   .max_vocab = config->corpus_max_vocab,
                                   .min_rating = min_rating,
                                   .pair_weights = (enum pair_weights)config->corpus_weights,
                                   .directed = config->graph_directed,
                                   .weights = config->graph_weights,
                                   .list_rows = config->examples_mode == MODE_USER || config_has_documents(config) ||
                                                corpus_formats[config->corpus_format].triples,
                                   .reciprocal = config->triples_reciprocal,
                                   .report_seconds = config->train_report_seconds};
}
