// A determinant, expanded by minors: next[c] is the column after c among those that are left, next[n] the first.
#include <cstdint>
#include <vector>

// The minor of the last `size` rows; `scale` times its gradient is added to a_bar.
static double minor(const double* a, int64_t n, int64_t size, int64_t row, int64_t* next, double scale, double* a_bar) {
    int64_t column = next[n];
    if (size == 1) {
        a_bar[row * n + column] += scale;
        return a[row * n + column];
    }
    double total = 0, sign = 1;
    int64_t before = n;
    for (int64_t i = 0; i < size; i++) {
        next[before] = next[column];
        const double entry = sign * a[row * n + column];
        const double below = minor(a, n, size - 1, row + 1, next, scale * entry, a_bar);
        next[before] = column;
        total += entry * below;
        a_bar[row * n + column] += scale * sign * below;
        before = column;
        column = next[column];
        sign = -sign;
    }
    return total;
}

extern "C" void derivative(const double* a, int64_t n, double* a_bar) {
    std::vector<int64_t> next(n + 1);
    for (int64_t i = 0; i < n; i++) next[i] = i + 1;
    next[n] = 0;
    for (int64_t i = 0; i < n * n; i++) a_bar[i] = 0;
    minor(a, n, n, 0, next.data(), 1, a_bar);
}
