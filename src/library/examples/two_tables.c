/* A model of the program's own that uses libsptx: users and items, with five million rows in two tables. The dot product of a user's row and an
 * item's row says how much the user likes the item.
 *
 *   cc two_tables.c $(pkg-config --cflags --libs sptx) && ./a.out
 *
 * Each step fetches the rows of a batch, computes gradients in this program, and gives them to the library. It sums the gradients of a row that
 * occurs several times, and does one Adagrad step for each different row. Exits with 0 if the model has learned the planted pattern.
 */
#include <sptx.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { USERS = 3000000, ITEMS = 2000000, DIM = 4, BATCH = 4096, STEPS = 60 };

static float u[BATCH * DIM], v[BATCH * DIM], du[BATCH * DIM], dv[BATCH * DIM];
static int64_t user[BATCH], item[BATCH];

static void check(enum sptx_status status, const struct sptx_context *context) {
    if (status == SPTX_OK) return;
    fprintf(stderr, "two_tables: %s\n", sptx_error(context));
    exit(1);
}

static struct sptx_table *open_table(struct sptx_context *context, uint64_t rows, uint32_t seed) {
    struct sptx_table_options options;
    struct sptx_table *table;
    sptx_table_defaults(&options, sizeof options);
    options.rows = rows;
    options.dim = DIM;
    options.optimizer = "adagrad";
    options.lr = 0.1;
    options.init = "uniform -0.5 0.5";
    options.seed = seed;
    check(sptx_table_open(context, &options, &table), context);
    return table;
}

/* Draws a batch from a few hundred users and items, spread over the tables. */
static void draw_batch(void) {
    for (int i = 0; i < BATCH; i++) {
        user[i] = (int64_t)(rand() % 300) * (USERS / 300);
        item[i] = (int64_t)(rand() % 200) * (ITEMS / 200);
    }
}

/* The planted pattern: a user likes every other item. */
static double liked(int i) {
    return (user[i] / (USERS / 300) + item[i] / (ITEMS / 200)) % 2 ? 1 : -1;
}

/* Computes the mean squared error of the batch, and its gradients. */
static double loss_and_gradients(void) {
    double loss = 0;
    for (int i = 0; i < BATCH; i++) {
        double error = -liked(i);
        for (int d = 0; d < DIM; d++) error += u[i * DIM + d] * v[i * DIM + d];
        loss += error * error / BATCH;
        for (int d = 0; d < DIM; d++) {
            du[i * DIM + d] = (float)error * v[i * DIM + d];
            dv[i * DIM + d] = (float)error * u[i * DIM + d];
        }
    }
    return loss;
}

int main(int argc, char **argv) {
    struct sptx_context_options machine = SPTX_CONTEXT_OPTIONS;
    struct sptx_context *context;
    double first = 0, last = 0;
    if (argc > 1) machine.device = argv[1]; /* "cpu" or "cuda"; without an argument a GPU is used, if there is one */
    check(sptx_open(&context, &machine), context);
    struct sptx_table *users = open_table(context, USERS, 1), *items = open_table(context, ITEMS, 2);
    struct sptx_ids of_users = {.data = user, .count = BATCH, .bits = 64, .memory = SPTX_HOST};
    struct sptx_ids of_items = {.data = item, .count = BATCH, .bits = 64, .memory = SPTX_HOST};
    srand(5);
    for (int step = 0; step < STEPS; step++) {
        draw_batch();
        check(sptx_fetch(users, &of_users, u, SPTX_HOST, NULL), context);
        check(sptx_fetch(items, &of_items, v, SPTX_HOST, NULL), context);
        last = loss_and_gradients();
        if (step == 0) first = last;
        check(sptx_update(users, &of_users, du, SPTX_HOST, NULL), context);
        check(sptx_update(items, &of_items, dv, SPTX_HOST, NULL), context);
    }
    printf("two_tables: the loss fell from %.3f to %.3f\n", first, last);
    sptx_close(context);
    return last < 0.2 * first ? 0 : 1;
}
