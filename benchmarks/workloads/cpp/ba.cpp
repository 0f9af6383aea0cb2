// Bundle adjustment. The blocks of the Jacobian, 2 × 15 an observation: camera (11), point (3), weight.
#include <cmath>
#include <cstdint>

struct Vector {
    double x, y, z;
};
static Vector operator+(Vector a, Vector b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
static Vector operator-(Vector a, Vector b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
static Vector operator*(double c, Vector a) { return {c * a.x, c * a.y, c * a.z}; }
static double dot(Vector a, Vector b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
static Vector cross(Vector a, Vector b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
static Vector load(const double* p) { return {p[0], p[1], p[2]}; }
static void store(double* p, Vector a) { p[0] = a.x, p[1] = a.y, p[2] = a.z; }

extern "C" void derivative(const double* __restrict cameras, const double* __restrict points,
                           const double* __restrict weights, const double* __restrict features, int64_t count,
                           double* __restrict blocks) {
    for (int64_t i = 0; i < count; i++) {
        const double* c = cameras + 11 * i;
        const Vector x = load(points + 3 * i) - load(c + 3), rotation = load(c);
        const double angle = std::sqrt(dot(rotation, rotation)), inverse = 1 / angle;
        const double cosine = std::cos(angle), sine = std::sin(angle);
        const Vector axis = inverse * rotation, turned = cross(axis, x);
        const double on_axis = dot(axis, x), along = on_axis * (1 - cosine);
        const Vector seen = cosine * x + sine * turned + along * axis;
        const double u[2] = {seen.x / seen.z, seen.y / seen.z};
        const double r2 = u[0] * u[0] + u[1] * u[1];
        const double distortion = 1 + c[9] * r2 + c[10] * r2 * r2, slope = c[9] + 2 * c[10] * r2;
        const double focal = c[6], weight = weights[i];
        for (int row = 0; row < 2; row++) {
            double* out = blocks + 30 * i + 15 * row;
            const double here = u[row], distortion_bar = weight * focal * here, r2_bar = distortion_bar * slope;
            out[14] = here * distortion * focal + c[7 + row] - features[2 * i + row];
            out[6] = weight * here * distortion;
            out[7] = row == 0 ? weight : 0;
            out[8] = row == 1 ? weight : 0;
            out[9] = distortion_bar * r2;
            out[10] = distortion_bar * r2 * r2;
            double u_bar[2] = {2 * u[0] * r2_bar, 2 * u[1] * r2_bar};
            u_bar[row] += weight * focal * distortion;
            const Vector seen_bar = (1 / seen.z) * Vector{u_bar[0], u_bar[1], -(u_bar[0] * u[0] + u_bar[1] * u[1])};
            const double along_bar = dot(seen_bar, axis), on_axis_bar = along_bar * (1 - cosine);
            const double cosine_bar = dot(seen_bar, x) - along_bar * on_axis, sine_bar = dot(seen_bar, turned);
            const Vector turned_bar = sine * seen_bar;
            const Vector x_bar = cosine * seen_bar + cross(turned_bar, axis) + on_axis_bar * axis;
            const Vector axis_bar = along * seen_bar + cross(x, turned_bar) + on_axis_bar * x;
            const double angle_bar =
                sine_bar * cosine - cosine_bar * sine - dot(axis_bar, rotation) * inverse * inverse;
            store(out, inverse * axis_bar + angle_bar * axis);
            store(out + 3, -1 * x_bar);
            store(out + 11, x_bar);
        }
    }
}
