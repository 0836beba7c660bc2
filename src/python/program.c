/* The program of the wheel: libsptx.so beside it has all of the code, so that the package holds it once. */
int sptx_w2v_main(int argc, char **argv); /* main() of src/cli/main.c */

int main(int argc, char **argv) {
    return sptx_w2v_main(argc, argv);
}
