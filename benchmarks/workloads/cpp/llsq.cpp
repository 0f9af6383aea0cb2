// Half the squared error of a polynomial fitted to a step. The gradient in its coefficients x.
#include <cstdint>
#include <vector>

extern "C" void derivative(const double* __restrict x, int64_t m, int64_t n, double* __restrict x_bar) {
    std::vector<double> kept(m);
    double* __restrict powers = kept.data();
    for (int64_t j = 0; j < m; j++) x_bar[j] = 0;
    for (int64_t i = 0; i < n; i++) {
        const double t = -1 + i * 2.0 / (n - 1);
        double residual = (t > 0) - (t < 0);
        double power = 1;
        for (int64_t j = 0; j < m; j++) {
            powers[j] = power;
            residual -= x[j] * power;
            power *= t;
        }
        for (int64_t j = 0; j < m; j++) x_bar[j] -= residual * powers[j];
    }
}
