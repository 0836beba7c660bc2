#include "powers.h"

#include "kernels/backend.h" /* draws.h */

void powers_init(struct powers *powers) {
    for (int t = 0; t <= POWERS_TABLE; t++) powers->of[t] = (uint64_t)(draw_exp2((double)t / POWERS_TABLE) * 2147483648.0 + 0.5);
}

uint64_t powers_log(const struct powers *powers, uint64_t k) {
    uint64_t low = 0, high = (uint64_t)34 << POWERS_POINT;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (powers_floor(powers, middle) >= k)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}
