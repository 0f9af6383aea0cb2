// A recurrent network with diagonal weights. The gradient in all weights.
// Kept are the gates and tanh of the cells; the rest is computed again from them.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct Kept {
    double forget, in, out, change, tanh_cell;
};

extern "C" void derivative(const double* __restrict layers, const double* __restrict ends,
                           const double* __restrict state, const double* __restrict sequence, int64_t n_layers,
                           int64_t bits, int64_t length, double* __restrict layers_bar, double* __restrict ends_bar) {
    const int64_t steps = length - 1, all = n_layers * bits;
    std::vector<Kept> gates(steps * all);
    std::vector<double> cells((steps + 1) * all), hiddens((steps + 1) * all), shares(steps * bits), x(bits);
    for (int64_t l = 0; l < n_layers; l++) {
        std::copy_n(state + 2 * l * bits, bits, &hiddens[l * bits]);
        std::copy_n(state + (2 * l + 1) * bits, bits, &cells[l * bits]);
    }
    for (int64_t t = 0; t < steps; t++) {
        for (int64_t j = 0; j < bits; j++) x[j] = sequence[t * bits + j] * ends[j];
        for (int64_t l = 0; l < n_layers; l++) {
            const double *w = layers + 8 * l * bits, *b = w + 4 * bits;
            for (int64_t j = 0; j < bits; j++) {
                const int64_t now = t * all + l * bits + j, after = now + all;
                Kept& gate = gates[now];
                gate.forget = sigmoid(x[j] * w[j] + b[j]);
                gate.in = sigmoid(hiddens[now] * w[bits + j] + b[bits + j]);
                gate.out = sigmoid(x[j] * w[2 * bits + j] + b[2 * bits + j]);
                gate.change = std::tanh(hiddens[now] * w[3 * bits + j] + b[3 * bits + j]);
                cells[after] = cells[now] * gate.forget + gate.in * gate.change;
                gate.tanh_cell = std::tanh(cells[after]);
                hiddens[after] = x[j] = gate.out * gate.tanh_cell;
            }
        }
        double total = 2;
        for (int64_t j = 0; j < bits; j++) {
            shares[t * bits + j] = std::exp(x[j] * ends[bits + j] + ends[2 * bits + j]);
            total += shares[t * bits + j];
        }
        for (int64_t j = 0; j < bits; j++) shares[t * bits + j] /= total;
    }
    std::fill_n(layers_bar, 8 * all, 0.0);
    std::fill_n(ends_bar, 3 * bits, 0.0);
    std::vector<double> hidden_bar(all, 0.0), cell_bar(all, 0.0), x_bar(bits);
    const double scale = -1.0 / (steps * bits);
    for (int64_t t = steps - 1; t >= 0; t--) {
        const double *gold = sequence + (t + 1) * bits, *last = &hiddens[(t + 1) * all + (n_layers - 1) * bits];
        double sum = 0;
        for (int64_t j = 0; j < bits; j++) sum += gold[j];
        for (int64_t j = 0; j < bits; j++) {
            const double predicted_bar = scale * (gold[j] - sum * shares[t * bits + j]);
            ends_bar[bits + j] += predicted_bar * last[j];
            ends_bar[2 * bits + j] += predicted_bar;
            x_bar[j] = predicted_bar * ends[bits + j];
        }
        for (int64_t l = n_layers - 1; l >= 0; l--) {
            const double* w = layers + 8 * l * bits;
            double *w_bar = layers_bar + 8 * l * bits, *b_bar = w_bar + 4 * bits;
            for (int64_t j = 0; j < bits; j++) {
                const int64_t place = l * bits + j, now = t * all + place;
                const double below = l > 0 ? hiddens[now + all - bits] : sequence[t * bits + j] * ends[j];
                const double h = hiddens[now];
                const Kept gate = gates[now];
                const double h_bar = hidden_bar[place] + x_bar[j];
                const double c_bar = cell_bar[place] + h_bar * gate.out * (1 - gate.tanh_cell * gate.tanh_cell);
                const double forget_bar = c_bar * cells[now] * gate.forget * (1 - gate.forget);
                const double in_bar = c_bar * gate.change * gate.in * (1 - gate.in);
                const double out_bar = h_bar * gate.tanh_cell * gate.out * (1 - gate.out);
                const double change_bar = c_bar * gate.in * (1 - gate.change * gate.change);
                w_bar[j] += forget_bar * below;
                w_bar[bits + j] += in_bar * h;
                w_bar[2 * bits + j] += out_bar * below;
                w_bar[3 * bits + j] += change_bar * h;
                b_bar[j] += forget_bar;
                b_bar[bits + j] += in_bar;
                b_bar[2 * bits + j] += out_bar;
                b_bar[3 * bits + j] += change_bar;
                x_bar[j] = forget_bar * w[j] + out_bar * w[2 * bits + j];
                hidden_bar[place] = in_bar * w[bits + j] + change_bar * w[3 * bits + j];
                cell_bar[place] = c_bar * gate.forget;
            }
        }
        for (int64_t j = 0; j < bits; j++) ends_bar[j] += x_bar[j] * sequence[t * bits + j];
    }
}
