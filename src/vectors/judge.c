#include "judge.h"

int judge_checkpoint(double *recall, uint64_t *lists, const char *checkpoint, const struct held_out *held_out,
                     const struct config *config) {
    struct sptx_lists_score score = {.lists = 0};
    struct model model;
    int result = model_open(&model, checkpoint);
    if (!result) result = evaluate_split(&score, &model, held_out, JUDGE_PLACES, config);
    model_close(&model);
    *recall = score.recall;
    *lists = score.lists;
    return result;
}
