// A charged particle steered to the origin. The derivative in w, by a tangent: there is one input.
#include <cmath>

extern "C" double derivative(double w, double dt) {
    double x = 0, y = 8, vx = 0.75, vy = 0;
    double x_dot = 0, y_dot = 0, vx_dot = 0, vy_dot = 0;
    while (y + dt * vy > 0) {
        const double dx = x - 10, dy = y - 10 + w, dz = y;
        const double dy_dot = y_dot + 1, dz_dot = y_dot;
        const double r = dx * dx + dy * dy, s = dx * dx + dz * dz;
        const double a = 1 / (r * std::sqrt(r)), b = 1 / (s * std::sqrt(s));
        const double a_dot = -3 * a / r * (dx * x_dot + dy * dy_dot);
        const double b_dot = -3 * b / s * (dx * x_dot + dz * dz_dot);
        const double gx = -dx * (a + b), gy = -dy * a - dz * b;
        const double gx_dot = -x_dot * (a + b) - dx * (a_dot + b_dot);
        const double gy_dot = -dy_dot * a - dy * a_dot - dz_dot * b - dz * b_dot;
        x += dt * vx;
        x_dot += dt * vx_dot;
        y += dt * vy;
        y_dot += dt * vy_dot;
        vx -= dt * gx;
        vx_dot -= dt * gx_dot;
        vy -= dt * gy;
        vy_dot -= dt * gy_dot;
    }
    const double rest = -y / vy, rest_dot = (-y_dot - rest * vy_dot) / vy;
    const double end = x + rest * vx;
    return 2 * end * (x_dot + rest_dot * vx + rest * vx_dot);
}
