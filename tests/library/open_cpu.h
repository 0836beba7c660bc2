/* Opens a context on the CPU. Include this after cmocka.h. */
static struct sptx_context *open_cpu(unsigned threads) {
    struct sptx_context_options options = SPTX_CONTEXT_OPTIONS;
    struct sptx_context *context;
    options.device = "cpu";
    options.threads = threads;
    assert_int_equal(sptx_open(&context, &options), SPTX_OK);
    return context;
}
