/* The `sptx-w2v` of the Python wheel. All of its code is in libsptx.so beside it, so that the package contains it only once. */
int sptx_w2v_main(int argc, char **argv); /* main() of src/cli/main.c */

int main(int argc, char **argv) {
    return sptx_w2v_main(argc, argv);
}
