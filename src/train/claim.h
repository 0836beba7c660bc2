/* claim: the run directory taken for training, and what is to become of the run that it holds. Where ranks train together the
 * first one takes it and tells the others, which write nothing there.
 */
#ifndef SPTX_CLAIM_H
#define SPTX_CLAIM_H

#include "run_directory.h"
#include "state.h"
#include "trainer.h"

struct claim {
    struct run_directory run; /* of the first rank; of the others the paths alone */
    char *checkpoint;         /* to go on from, owned; NULL: the run begins anew */
    struct run_state older;   /* of that checkpoint */
};

/* Takes config->run_dir, which becomes the directory's real path, and settles keys as the run there has them. Refuses a run that
 * is there and was not asked for: -1 after fail(), on every rank. The caller closes in any case. */
int claim_open(struct claim *claim, struct config *config, const struct trainer_options *options);
void claim_close(struct claim *claim);

#endif
