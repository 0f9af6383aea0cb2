// Saddle points by nested descents. The derivative of where they end, by where they start: the steps are linear, so
// that counting them is all that the way back needs.
#include <cstdint>
#include <vector>

static const double CLOSE = 1e-2, STEP = 0.1;

extern "C" void derivative(const double* starts, int64_t count, double* starts_bar) {
    std::vector<int64_t> climbs;
    for (int64_t i = 0; i < count; i++) {
        double x1 = starts[4 * i], y1 = starts[4 * i + 1], x2 = starts[4 * i + 2], y2 = starts[4 * i + 3];
        climbs.clear();
        for (double moved = 1; moved > CLOSE * CLOSE;) {
            int64_t steps = 0;
            for (double climbed = 1; climbed > CLOSE * CLOSE; steps++) {
                const double up = x1 / 4 - 2 * x2, across = y1 / 4 - 2 * y2;
                x2 += STEP * up;
                y2 += STEP * across;
                climbed = up * up + across * across;
            }
            climbs.push_back(steps);
            const double down = 2 * x1 + x2 / 4, along = 2 * y1 + y2 / 4;
            x1 -= STEP * down;
            y1 -= STEP * along;
            moved = down * down + along * along;
        }
        double a = 1, b = 2, c = -y2, d = -x2;
        for (auto steps = climbs.rbegin(); steps != climbs.rend(); ++steps) {
            c -= STEP / 4 * a;
            a -= STEP * 2 * a;
            d -= STEP / 4 * b;
            b -= STEP * 2 * b;
            for (int64_t s = 0; s < *steps; s++) {
                a += STEP / 4 * c;
                c -= STEP * 2 * c;
                b += STEP / 4 * d;
                d -= STEP * 2 * d;
            }
        }
        starts_bar[4 * i] = a;
        starts_bar[4 * i + 1] = b;
        starts_bar[4 * i + 2] = c;
        starts_bar[4 * i + 3] = d;
    }
}
