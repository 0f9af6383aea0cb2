// Squared distances of points to their nearest centroids. The gradient and the diagonal of the Hessian.
#include <cstdint>
#include <limits>

extern "C" void derivative(const double* __restrict points, int64_t n, int64_t d, const double* __restrict centroids,
                           int64_t k, double* __restrict first, double* __restrict second) {
    for (int64_t i = 0; i < k * d; i++) first[i] = second[i] = 0;
    for (int64_t i = 0; i < n; i++) {
        const double* point = points + i * d;
        double closest = std::numeric_limits<double>::infinity();
        int64_t nearest = 0;
        for (int64_t j = 0; j < k; j++) {
            const double* centroid = centroids + j * d;
            double distance = 0;
            for (int64_t a = 0; a < d; a++) {
                const double apart = point[a] - centroid[a];
                distance += apart * apart;
            }
            if (distance < closest) {
                closest = distance;
                nearest = j;
            }
        }
        for (int64_t a = 0; a < d; a++) {
            first[nearest * d + a] += 2 * (centroids[nearest * d + a] - point[a]);
            second[nearest * d + a] += 2;
        }
    }
}
