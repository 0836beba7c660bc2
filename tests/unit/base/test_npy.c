#include "base/file.h"
#include "base/npy.h"
#include "base/report.h"
#include "tests/fresh_directory.h"

#include "tests/testing.h"

static char directory[256], *path;

static int set_up(void **state) {
    if (fresh_directory(directory, sizeof directory, "npy")) return -1;
    path = file_join(directory, "table.npy");
    return path ? 0 : -1;
}

static int tear_down(void **state) {
    free(path);
    return directory_remove_tree(directory);
}

/* Writes an npy file of this version with this header, padded as by NumPy, followed by `data` bytes of 0x3F. */
static void write_raw(int version, const char *header, uint64_t data) {
    char bytes[4096] = "\x93NUMPY";
    size_t length = strlen(header), at = version == 1 ? 10 : 12, n = (at + length + 1 + 63) / 64 * 64 - at;
    bytes[6] = (char)version;
    bytes[8] = (char)(n & 255);
    bytes[9] = (char)(n >> 8);
    memcpy(bytes + at, header, length);
    memset(bytes + at + length, ' ', n - length);
    bytes[at + n - 1] = '\n';
    memset(bytes + at + n, 0x3F, data);
    assert_int_equal(file_replace(path, bytes, at + n + data), 0);
}

static void refused(const char *part) {
    struct npy npy;
    assert_int_equal(npy_open(&npy, path), -1);
    if (!strstr(report_sentence(), part)) print_message("sentence: %s\nwanted: %s\n", report_sentence(), part);
    assert_non_null(strstr(report_sentence(), part));
    assert_non_null(strstr(report_sentence(), path));
    assert_null(npy.map.data);
    report_clear();
}

static void refused_header(const char *header, const char *part) {
    write_raw(1, header, 240);
    refused(part);
}

/* ---- what is written is read back ---- */

static void structured_round_trip(void **state) {
    struct npy out = {.rows = 3, .fields = 3}, npy;
    struct file_writer writer;
    strcpy(out.field[0].name, "weights"), out.field[0].columns = 2, out.field[0].kind = 'f';
    strcpy(out.field[1].name, "exp_avg"), out.field[1].columns = 2, out.field[1].kind = 'f';
    strcpy(out.field[2].name, "updates"), out.field[2].columns = 1, out.field[2].kind = 'u';
    assert_int_equal(file_writer_open(&writer, path), 0);
    assert_int_equal(npy_write_header(&out, &writer), 0);
    assert_int_equal(writer.written, out.data);
    assert_int_equal(out.data % 64, 0);
    assert_int_equal(out.record, 20);
    for (uint32_t row = 0; row < 3; row++) {
        float values[4] = {(float)row, (float)row + 0.5f, 100, 200};
        uint32_t updates = 7 + row;
        file_write(&writer, values, sizeof values);
        file_write(&writer, &updates, sizeof updates);
    }
    assert_int_equal(file_commit(&writer), 0);

    assert_int_equal(npy_open(&npy, path), 0);
    assert_int_equal(npy.rows, 3);
    assert_int_equal(npy.record, 20);
    assert_int_equal(npy.data, out.data);
    const struct npy_field *weights = npy_find(&npy, "weights"), *updates = npy_find(&npy, "updates");
    assert_non_null(weights);
    assert_non_null(updates);
    assert_null(npy_find(&npy, "sum"));
    assert_int_equal(weights->columns, 2);
    assert_int_equal(updates->kind, 'u');
    assert_int_equal(updates->offset, 16);
    assert_true(((const float *)npy_row(&npy, weights, 2))[1] == 2.5f);
    assert_int_equal(*(const uint32_t *)npy_row(&npy, updates, 2), 9);
    static const char wanted[] = "{'descr': [('weights', '<f4', (2,)), ('exp_avg', '<f4', (2,)), ('updates', '<u4')], "
                                 "'fortran_order': False, 'shape': (3,), }";
    assert_memory_equal(npy.map.data + 10, wanted, sizeof wanted - 1);
    assert_int_equal(npy.map.data[npy.data - 1], '\n');
    npy_close(&npy);
    assert_int_equal(npy.rows, 0);
}

static void plain_round_trip(void **state) {
    struct npy out = {.rows = 2, .fields = 1}, npy;
    float values[6] = {1, 2, 3, 4, 5, 6};
    struct file_writer writer;
    out.field[0] = (struct npy_field){.columns = 3, .kind = 'f'};
    assert_int_equal(file_writer_open(&writer, path), 0);
    assert_int_equal(npy_write_header(&out, &writer), 0);
    file_write(&writer, values, sizeof values);
    assert_int_equal(file_commit(&writer), 0);
    assert_int_equal(npy_open(&npy, path), 0);
    assert_non_null(npy_find(&npy, "weights"));
    assert_int_equal(npy_find(&npy, "weights")->columns, 3);
    assert_true(((const float *)npy_row(&npy, npy_find(&npy, "weights"), 1))[2] == 6.0f);
    npy_close(&npy);
}

/* A bfloat16 field has the type '<u2' in the file, and its field name ends in _bfloat16. */
static void bfloat16_round_trip(void **state) {
    struct npy out = {.rows = 2, .fields = 2}, npy;
    const char values[2 * (3 * 2 + 4)] = {0, 1, 2, 3, 4, 5};
    struct file_writer writer;
    out.field[0] = (struct npy_field){.name = "weights", .columns = 3, .kind = 'h'};
    out.field[1] = (struct npy_field){.name = "updates", .columns = 1, .kind = 'u'};
    assert_int_equal(file_writer_open(&writer, path), 0);
    assert_int_equal(npy_write_header(&out, &writer), 0);
    file_write(&writer, values, sizeof values);
    assert_int_equal(file_commit(&writer), 0);
    assert_int_equal(npy_open(&npy, path), 0);
    assert_non_null(strstr(npy.map.data + 10, "[('weights_bfloat16', '<u2', (3,)), ('updates', '<u4')]"));
    assert_int_equal(npy_find(&npy, "weights")->kind, 'h');
    assert_int_equal(npy_find(&npy, "updates")->offset, 6);
    assert_int_equal(npy.record, 10);
    npy_close(&npy);
    refused_header("{'descr': [('weights', '<u2', (3,))], 'fortran_order': False, 'shape': (2,), }", "_bfloat16");
    refused_header("{'descr': '<u2', 'fortran_order': False, 'shape': (2, 3), }", "'<u2'");
}

/* Even a single column has a shape, so that NumPy gives a matrix. The data is aligned for every number of rows. */
static void header_shapes(void **state) {
    for (uint64_t rows = 1; rows < UINT64_MAX / 100; rows *= 10) {
        struct npy out = {.rows = rows, .fields = 1};
        struct file_writer writer;
        strcpy(out.field[0].name, "weights"), out.field[0].columns = 1, out.field[0].kind = 'f';
        assert_int_equal(file_writer_open(&writer, path), 0);
        assert_int_equal(npy_write_header(&out, &writer), 0);
        assert_int_equal(out.data % 64, 0);
        assert_non_null(strstr(writer.buffer + 10, "[('weights', '<f4', (1,))]"));
        assert_int_equal(writer.buffer[writer.used - 1], '\n');
        file_abandon(&writer);
    }
}

/* ---- what others write is read ---- */

static void other_writers(void **state) {
    struct npy npy;
    write_raw(2, "{'shape': (3, 4), 'fortran_order': False, 'descr': '<f4'}", 48);
    assert_int_equal(npy_open(&npy, path), 0);
    assert_int_equal(npy.rows, 3);
    assert_int_equal(npy.record, 16);
    assert_int_equal(npy.data, 128);
    npy_close(&npy);
    write_raw(1, "{\"descr\": [(\"a\", \"<u4\"), (\"b\",\"<f4\",(3,),),], \"fortran_order\": False, \"shape\": (2,),}",
              32);
    assert_int_equal(npy_open(&npy, path), 0);
    assert_int_equal(npy_find(&npy, "b")->offset, 4);
    assert_int_equal(npy_find(&npy, "b")->columns, 3);
    npy_close(&npy);
    write_raw(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 4), }", 0);
    assert_int_equal(npy_open(&npy, path), 0);
    assert_int_equal(npy.rows, 0);
    assert_int_equal(npy_find(&npy, "weights")->columns, 4);
    npy_close(&npy);
}

/* ---- what is broken is refused ---- */

static void broken_headers(void **state) {
    refused_header("{'descr': '<f4', 'fortran_order': True, 'shape': (3, 4), }", "column by column");
    refused_header("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }", "'<f8'");
    refused_header("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4, 5), }", "shape");
    refused_header("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", "shape");
    refused_header("{'descr': '<f4', 'fortran_order': False, 'shape': (-3, 4), }", "shape");
    refused_header("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 0), }", "no column");
    refused_header("{'descr': '<f4', 'fortran_order': False, }", "lacks");
    refused_header("{'descr': '<f4', 'descr': '<f4', 'shape': (3, 4), }", "twice");
    refused_header("{'descr': '<f4', 'fortran_order': False, 'sh                    ", "dict");
    refused_header("                                                                ", "not a dict");
    refused_header("{'descr': [], 'fortran_order': False, 'shape': (3,), }", "list of fields");
    refused_header("{'descr': [('a', '<f4', (2,2))], 'fortran_order': False, 'shape': (3,), }",
                   "one number of columns");
    refused_header("{'descr': [('a', '<f4', (2,))], 'fortran_order': False, 'shape': (3, 2), }", "second dimension");
    refused_header("{'descr': [('a', '<f4'), ('b', '<f4'), ('c', '<f4'), ('d', '<f4'), ('e', '<f4'), ('f', '<f4'), "
                   "('g', '<f4'), ('h', '<f4'), ('i', '<f4')], 'fortran_order': False, 'shape': (3,), }",
                   "more than 8 fields");
}

static void broken_sizes(void **state) {
    static const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }";
    struct npy npy;
    write_raw(1, header, 48);
    assert_int_equal(npy_open(&npy, path), 0);
    assert_int_equal(npy.rows, 3);
    npy_close(&npy);
    write_raw(1, header, 47);
    refused("cut off");
    write_raw(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", 48);
    refused("cut off");
    write_raw(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 4), }", 48);
    refused("shape");
    assert_int_equal(file_replace(path, "", 0), 0);
    refused("does not begin");
    assert_int_equal(file_replace(path, "word2vec 100 200\n", 17), 0);
    refused("does not begin");
    assert_int_equal(file_replace(path, "\x93NUMPY\x01\x00\xF6\x00{'descr'", 18), 0);
    refused("cut off in its header");
    assert_int_equal(file_replace(path, "\x93NUMPY\x09\x00\xF6\x00{'descr'", 18), 0);
    refused("format 9");
    assert_int_equal(unlink(path), 0);
    refused("cannot open");
}

/* Changes each byte of the header to any value: the file must be opened or refused, and never read past its end. */
static void changed_bytes(void **state) {
    static const char header[] =
        "{'descr': [('w', '<f4', (2,)), ('u', '<u4')], 'fortran_order': False, 'shape': (3,), }";
    static const char values[] = "\0'(){},:[]0919 \n\\Tz\x80\xFF";
    char whole[256];
    struct file_map map;
    write_raw(1, header, 36);
    assert_int_equal(file_map_open(&map, path), 0);
    uint64_t n = map.size;
    memcpy(whole, map.data, n);
    file_map_close(&map);
    for (uint64_t at = 0; at < n - 36; at++)
        for (size_t i = 0; i < sizeof values - 1; i++) {
            struct npy npy;
            char kept = whole[at];
            whole[at] = values[i];
            FILE *file = fopen(path, "wb");
            fwrite(whole, 1, n, file);
            fclose(file);
            if (!npy_open(&npy, path)) {
                assert_true(npy.data + npy.rows * npy.record <= npy.map.size);
                npy_close(&npy);
            } else {
                assert_true(report_sentence()[0]);
            }
            report_clear();
            whole[at] = kept;
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(structured_round_trip, set_up, tear_down),
        cmocka_unit_test_setup_teardown(plain_round_trip, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bfloat16_round_trip, set_up, tear_down),
        cmocka_unit_test_setup_teardown(header_shapes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_writers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(broken_headers, set_up, tear_down),
        cmocka_unit_test_setup_teardown(broken_sizes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(changed_bytes, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("npy", tests, NULL, NULL);
}
