// The log-posterior of a Gaussian mixture with a Wishart prior. The gradient in all parameters.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

// z = L x, with the diagonal and, column by column, what is below it.
static void times_lower(double* __restrict z, const double* __restrict x, const double* __restrict diagonal,
                        const double* __restrict lower, int64_t d) {
    for (int64_t a = 0; a < d; a++) z[a] = diagonal[a] * x[a];
    for (int64_t a = 0; a < d; a++) {
        double* __restrict below = z + a + 1;
        const int64_t rest = d - 1 - a;
        for (int64_t b = 0; b < rest; b++) below[b] += lower[b] * x[a];
        lower += rest;
    }
}

// From the cotangent z_bar of L x to those of L and of x's mean.
static void pull_lower(const double* __restrict z_bar, const double* __restrict x, const double* __restrict diagonal,
                       const double* __restrict lower, int64_t d, double* __restrict diagonal_bar,
                       double* __restrict lower_bar, double* __restrict mean_bar) {
    for (int64_t a = 0; a < d; a++) {
        const double* __restrict below = z_bar + a + 1;
        const int64_t rest = d - 1 - a;
        double x_bar = z_bar[a] * diagonal[a];
        diagonal_bar[a] += z_bar[a] * x[a];
        for (int64_t b = 0; b < rest; b++) {
            lower_bar[b] += below[b] * x[a];
            x_bar += below[b] * lower[b];
        }
        mean_bar[a] -= x_bar;
        lower += rest;
        lower_bar += rest;
    }
}

extern "C" void derivative(const double* alpha, const double* means, const double* log_diagonals, const double* lower,
                           const double* points, double gamma, int64_t m, int64_t n, int64_t d, int64_t k,
                           double* alpha_bar, double* means_bar, double* diagonals_bar, double* lower_bar) {
    const int64_t below = d * (d - 1) / 2;
    std::vector<double> diagonals(k * d), log_determinants(k, 0.0), weight_sums(k, 0.0), terms(k);
    std::vector<double> zs(k * d), centred(k * d);
    for (int64_t c = 0; c < k; c++) {
        for (int64_t a = 0; a < d; a++) {
            diagonals[c * d + a] = std::exp(log_diagonals[c * d + a]);
            log_determinants[c] += log_diagonals[c * d + a];
        }
    }
    std::fill(means_bar, means_bar + k * d, 0.0);
    std::fill(diagonals_bar, diagonals_bar + k * d, 0.0);
    std::fill(lower_bar, lower_bar + k * below, 0.0);
    for (int64_t i = 0; i < n; i++) {
        const double* point = points + i * d;
        double largest = -std::numeric_limits<double>::infinity();
        for (int64_t c = 0; c < k; c++) {
            double *z = &zs[c * d], *x = &centred[c * d];
            for (int64_t a = 0; a < d; a++) x[a] = point[a] - means[c * d + a];
            times_lower(z, x, &diagonals[c * d], lower + c * below, d);
            double squares = 0;
            for (int64_t a = 0; a < d; a++) squares += z[a] * z[a];
            terms[c] = alpha[c] + log_determinants[c] - 0.5 * squares;
            largest = std::max(largest, terms[c]);
        }
        double total = 0;
        for (int64_t c = 0; c < k; c++) {
            terms[c] = std::exp(terms[c] - largest);
            total += terms[c];
        }
        for (int64_t c = 0; c < k; c++) {
            const double weight = terms[c] / total;
            double* z = &zs[c * d];
            weight_sums[c] += weight;
            for (int64_t a = 0; a < d; a++) z[a] *= -weight;
            pull_lower(z, &centred[c * d], &diagonals[c * d], lower + c * below, d, diagonals_bar + c * d,
                       lower_bar + c * below, means_bar + c * d);
        }
    }
    const double largest = *std::max_element(alpha, alpha + k);
    double total = 0;
    for (int64_t c = 0; c < k; c++) total += std::exp(alpha[c] - largest);
    for (int64_t c = 0; c < k; c++) {
        alpha_bar[c] = weight_sums[c] - n * std::exp(alpha[c] - largest) / total;
        for (int64_t a = c * d; a < (c + 1) * d; a++) {
            const double diagonal_bar = diagonals_bar[a] - gamma * gamma * diagonals[a];
            diagonals_bar[a] = diagonal_bar * diagonals[a] + weight_sums[c] + m;
        }
        for (int64_t a = c * below; a < (c + 1) * below; a++) lower_bar[a] -= gamma * gamma * lower[a];
    }
}
