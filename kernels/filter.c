#include "filter.h"

/* Returns the modified Bessel function of the first kind. */
static double bessel(int order, double x) {
    double term = 1, sum = 0;
    for (int i = 1; i <= order; i++) term *= x / 2 / i;
    for (int i = 1; i <= 30; i++) {
        sum += term;
        term *= x * x / 4 / i / (i + order);
    }
    return sum;
}

double filter_coefficient(int term) {
    static const double theta = 0.5;
    return (term % 2 ? -1 : 1) * (term ? 2 : 1) * bessel(term, theta);
}
