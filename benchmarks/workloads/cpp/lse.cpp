// log Σ exp x. The gradient: exp(x - max x) over their sum.
#include <algorithm>
#include <cmath>
#include <cstdint>

extern "C" void derivative(const double* __restrict x, int64_t n, double* __restrict x_bar) {
    const double shift = *std::max_element(x, x + n);
    double total = 0;
    for (int64_t i = 0; i < n; i++) {
        x_bar[i] = std::exp(x[i] - shift);
        total += x_bar[i];
    }
    for (int64_t i = 0; i < n; i++) x_bar[i] /= total;
}
