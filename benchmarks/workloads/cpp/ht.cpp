// Hand tracking. The Jacobian in theta (points, 3, 26), and the derivatives along all first, and all second,
// coordinates of us. Forward mode: the hand is posed once, and then moved along one direction after the other.
// With `knows_the_hand`, an angle moves the bones behind its joint, and the others are left out.
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

template <size_t N>
using Matrix = std::array<std::array<double, N>, N>;

template <size_t N>
static Matrix<N> operator*(const Matrix<N>& a, const Matrix<N>& b) {
    Matrix<N> c{};
    for (size_t i = 0; i < N; i++)
        for (size_t k = 0; k < N; k++)
            for (size_t j = 0; j < N; j++) c[i][j] += a[i][k] * b[k][j];
    return c;
}

static Matrix<4> load(const double* p) {
    Matrix<4> m;
    for (int i = 0; i < 16; i++) m[i / 4][i % 4] = p[i];
    return m;
}

// A rotation about the axis `axis`, or its derivative by the angle.
static Matrix<4> about(int axis, double angle, bool moving) {
    const double c = std::cos(angle), s = std::sin(angle);
    const int a = (axis + 1) % 3, b = (axis + 2) % 3;
    Matrix<4> m{};
    m[a][a] = m[b][b] = moving ? -s : c;
    m[b][a] = moving ? c : s;
    m[a][b] = -m[b][a];
    if (!moving) m[axis][axis] = m[3][3] = 1;
    return m;
}

// A joint bends about x (angles[0]) and turns sideways about z (angles[1]); `moving` is the angle that moves, or -1.
static Matrix<4> joint(const double* angles, int moving) {
    return about(2, angles[1], moving == 1) * about(0, angles[0], moving == 0);
}

// Rodrigues' rotation, or its derivative by the coordinate `moving` of its vector.
static Matrix<3> rotation(const double* vector, int moving) {
    const double angle = std::sqrt(vector[0] * vector[0] + vector[1] * vector[1] + vector[2] * vector[2]);
    Matrix<3> r{};
    if (angle < 0.0001) {
        if (moving < 0) r[0][0] = r[1][1] = r[2][2] = 1;
        return r;
    }
    const double s = std::sin(angle), c = std::cos(angle);
    double x[3], x_dot[3] = {0, 0, 0}, s_dot = s, c_dot = c;
    for (int i = 0; i < 3; i++) x[i] = vector[i] / angle;
    if (moving >= 0) {
        for (int i = 0; i < 3; i++) x_dot[i] = ((i == moving) - x[i] * x[moving]) / angle;
        s_dot = c * x[moving];
        c_dot = -s * x[moving];
    }
    for (int i = 0; i < 3; i++) {
        for (int j = 0; j < 3; j++) {
            r[i][j] = moving < 0 ? x[i] * x[j] * (1 - c)
                                 : (x_dot[i] * x[j] + x[i] * x_dot[j]) * (1 - c) - x[i] * x[j] * c_dot;
        }
        r[i][i] += c_dot;
    }
    for (int i = 0; i < 3; i++) {
        const int a = (i + 1) % 3, b = (i + 2) % 3;
        const double turn = x[i] * s_dot + x_dot[i] * s;
        r[b][a] += turn;
        r[a][b] -= turn;
    }
    return r;
}

// What a bone contributes to the positions of the vertices.
static void add_moved(double* __restrict positions, const Matrix<4>& t, const double* __restrict base,
                      const double* __restrict weights, int64_t n) {
    for (int j = 0; j < 3; j++)
        for (int64_t v = 0; v < n; v++)
            positions[j * n + v] +=
                (t[j][0] * base[v] + t[j][1] * base[n + v] + t[j][2] * base[2 * n + v] + t[j][3] * base[3 * n + v]) *
                weights[v];
}

// The vertices of the triangle that each point lies in, turned: only these are looked at.
static void corner(double* out, const Matrix<3>& turn, const double* positions, int64_t n, int64_t vertex) {
    const double x = positions[vertex], y = positions[n + vertex], z = positions[2 * n + vertex];
    for (int j = 0; j < 3; j++) out[j] = turn[j][0] * x + turn[j][1] * y + turn[j][2] * z;
}

extern "C" void derivative(const double* theta, const double* us, const int64_t* parents, const double* base_relatives,
                           const double* inverse_base_absolutes, const double* base_positions, const double* weights,
                           const int64_t* triangles, const int64_t* owners, int64_t n_bones, int64_t n_vertices,
                           int64_t n_points, int64_t knows_the_hand, double* jacobian, double* of_us) {
    std::vector<double> angles(3 * n_bones, 0.0), skinned(3 * n_vertices, 0.0), positions_dot(3 * n_vertices);
    std::vector<Matrix<4>> relatives(n_bones), absolutes(n_bones), absolutes_dot(n_bones);
    for (int finger = 0; finger < 5; finger++) {
        const double* of = theta + 6 + 4 * finger;
        double* bone = &angles[3 * (2 + 4 * finger)];
        bone[0] = of[0], bone[1] = of[1], bone[3] = of[2], bone[6] = of[3];
    }
    for (int64_t bone = 0; bone < n_bones; bone++) {
        relatives[bone] = load(base_relatives + 16 * bone) * joint(&angles[3 * bone], -1);
        absolutes[bone] = parents[bone] == -1 ? relatives[bone] : absolutes[parents[bone]] * relatives[bone];
        add_moved(skinned.data(), absolutes[bone] * load(inverse_base_absolutes + 16 * bone), base_positions,
                  weights + bone * n_vertices, n_vertices);
    }
    const auto store = [&](const double* positions, const Matrix<3>& turn, int64_t column) {
        for (int64_t i = 0; i < n_points; i++) {
            const int64_t* triangle = triangles + 3 * owners[i];
            const double u = us[2 * i], v = us[2 * i + 1];
            double a[3], b[3], c[3];
            corner(a, turn, positions, n_vertices, triangle[0]);
            corner(b, turn, positions, n_vertices, triangle[1]);
            corner(c, turn, positions, n_vertices, triangle[2]);
            double* out = jacobian + 78 * i + column;
            for (int j = 0; j < 3; j++) out[26 * j] = -(u * a[j] + v * b[j] + (1 - u - v) * c[j]);
        }
    };
    for (int k = 0; k < 3; k++) store(skinned.data(), rotation(theta, k), k);
    for (int64_t i = 0; i < 3 * n_points; i++)
        for (int k = 0; k < 3; k++) jacobian[26 * i + 3 + k] = i % 3 == k ? -1 : 0;
    const Matrix<3> turn = rotation(theta, -1);
    for (int k = 6; k < 26; k++) {
        const int finger = (k - 6) / 4, number = (k - 6) % 4, first = 2 + 4 * finger + (number > 1 ? number - 1 : 0);
        positions_dot.assign(3 * n_vertices, 0.0);
        // The bones of a finger follow each other.
        const int64_t from = knows_the_hand ? first : 0, to = knows_the_hand ? 6 + 4 * finger : n_bones;
        for (int64_t bone = from; bone < to; bone++) {
            if (bone < first || (bone > first && parents[bone] == -1)) {
                absolutes_dot[bone] = {};
            } else if (bone == first) {
                const Matrix<4> moved = load(base_relatives + 16 * bone) * joint(&angles[3 * bone], number == 1);
                absolutes_dot[bone] = parents[bone] == -1 ? moved : absolutes[parents[bone]] * moved;
            } else {
                absolutes_dot[bone] = absolutes_dot[parents[bone]] * relatives[bone];
            }
            add_moved(positions_dot.data(), absolutes_dot[bone] * load(inverse_base_absolutes + 16 * bone),
                      base_positions, weights + bone * n_vertices, n_vertices);
        }
        store(positions_dot.data(), turn, k);
    }
    for (int64_t i = 0; i < n_points; i++) {
        const int64_t* triangle = triangles + 3 * owners[i];
        double a[3], b[3], c[3];
        corner(a, turn, skinned.data(), n_vertices, triangle[0]);
        corner(b, turn, skinned.data(), n_vertices, triangle[1]);
        corner(c, turn, skinned.data(), n_vertices, triangle[2]);
        for (int j = 0; j < 3; j++) {
            of_us[3 * i + j] = c[j] - a[j];
            of_us[3 * (n_points + i) + j] = c[j] - b[j];
        }
    }
}
