// y₀' = x₀, yᵢ' = xᵢ yᵢ₋₁ by Runge and Kutta. The gradient of the last yᵢ.
// y of every step is kept; the four slopes are computed again on the way back.
#include <cstdint>
#include <vector>

using Vector = std::vector<double>;

static void stages(const double* __restrict x, const double* __restrict y, int64_t n, double h, double* __restrict k1,
                   double* __restrict k2, double* __restrict k3, double* __restrict k4) {
    k1[0] = k2[0] = k3[0] = k4[0] = x[0];
    for (int64_t i = 1; i < n; i++) k1[i] = x[i] * y[i - 1];
    for (int64_t i = 1; i < n; i++) k2[i] = x[i] * (y[i - 1] + h / 2 * k1[i - 1]);
    for (int64_t i = 1; i < n; i++) k3[i] = x[i] * (y[i - 1] + h / 2 * k2[i - 1]);
    for (int64_t i = 1; i < n; i++) k4[i] = x[i] * (y[i - 1] + h * k3[i - 1]);
}

static void advance(double* __restrict after, const double* __restrict y, int64_t n, double h,
                    const double* __restrict k1, const double* __restrict k2, const double* __restrict k3,
                    const double* __restrict k4) {
    for (int64_t i = 0; i < n; i++) after[i] = y[i] + h / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i]);
}

// A slope pulls z_bar back to y as x[i + 1] z_bar[i + 1]: what stage `b` gets from the stage `above` it.
static void pull(double* __restrict b, const double* __restrict above, const double* __restrict y_bar,
                 const double* __restrict x, int64_t n, double direct, double through) {
    for (int64_t i = 0; i < n - 1; i++) b[i] = direct * y_bar[i] + through * x[i + 1] * above[i + 1];
    b[n - 1] = direct * y_bar[n - 1];
}

static void gather(double* __restrict x_bar, double* __restrict y_bar, const double* __restrict x,
                   const double* __restrict y, int64_t n, double h, const double* __restrict k1,
                   const double* __restrict k2, const double* __restrict k3, const double* __restrict b1,
                   const double* __restrict b2, const double* __restrict b3, const double* __restrict b4) {
    x_bar[0] += b1[0] + b2[0] + b3[0] + b4[0];
    for (int64_t i = 1; i < n; i++) {
        const double sum = b1[i] + b2[i] + b3[i] + b4[i];
        x_bar[i] += sum * y[i - 1] + h / 2 * (b2[i] * k1[i - 1] + b3[i] * k2[i - 1]) + h * b4[i] * k3[i - 1];
        y_bar[i - 1] += x[i] * sum;
    }
}

extern "C" void derivative(const double* x, int64_t n, int64_t steps, double* x_bar) {
    const double h = 2.0 / steps;
    Vector ys((steps + 1) * n, 0.0), y_bar(n, 0.0);
    Vector k1(n), k2(n), k3(n), k4(n), b1(n), b2(n), b3(n), b4(n);
    for (int64_t s = 0; s < steps; s++) {
        const double* y = &ys[s * n];
        stages(x, y, n, h, k1.data(), k2.data(), k3.data(), k4.data());
        advance(&ys[(s + 1) * n], y, n, h, k1.data(), k2.data(), k3.data(), k4.data());
    }
    for (int64_t i = 0; i < n; i++) x_bar[i] = 0;
    y_bar[n - 1] = 1;
    for (int64_t s = steps - 1; s >= 0; s--) {
        const double* y = &ys[s * n];
        stages(x, y, n, h, k1.data(), k2.data(), k3.data(), k4.data());
        for (int64_t i = 0; i < n; i++) b4[i] = h / 6 * y_bar[i];
        pull(b3.data(), b4.data(), y_bar.data(), x, n, h / 3, h);
        pull(b2.data(), b3.data(), y_bar.data(), x, n, h / 3, h / 2);
        pull(b1.data(), b2.data(), y_bar.data(), x, n, h / 6, h / 2);
        gather(x_bar, y_bar.data(), x, y, n, h, k1.data(), k2.data(), k3.data(), b1.data(), b2.data(), b3.data(),
               b4.data());
    }
}
