"""A recurrent network with diagonal weights that predicts the next character. Derivative: the gradient in all weights.

`layers[l, 0, g]` are the weights and `layers[l, 1, g]` the biases of gate g (forget, in, out, change) in layer l;
`ends` are the weights of the input, and the weights and biases of the output.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from .. import native_code, torch_code

WRT = (0, 1)
SIZES = {"tiny": (2, 4, 3), "l2 c1024 b14": (2, 1_024, 14), "l4 c4096 b14": (4, 4_096, 14)}


def sigmoid(x):  # type: ignore[no-untyped-def]
    return 1 / (1 + np.exp(-x))


def program(layers, ends, state, sequence):  # type: ignore[no-untyped-def]
    hidden = np.empty((state.shape[0], state.shape[2]))
    cell = np.empty((state.shape[0], state.shape[2]))
    hidden[:] = state[:, 0]
    cell[:] = state[:, 1]
    total = 0.0
    for t in range(sequence.shape[0] - 1):
        x = sequence[t] * ends[0]
        for layer in range(layers.shape[0]):
            weight = layers[layer, 0]
            bias = layers[layer, 1]
            forget = sigmoid(x * weight[0] + bias[0])
            ingate = sigmoid(hidden[layer] * weight[1] + bias[1])
            outgate = sigmoid(x * weight[2] + bias[2])
            change = np.tanh(hidden[layer] * weight[3] + bias[3])
            cell[layer] = cell[layer] * forget + ingate * change
            x = outgate * np.tanh(cell[layer])
            hidden[layer] = x
        predicted = x * ends[1] + ends[2]
        normalised = predicted - np.log(2 + np.sum(np.exp(predicted)))
        total += np.sum(sequence[t + 1] * normalised)
    return -total / ((sequence.shape[0] - 1) * sequence.shape[1])


def inputs(size: str) -> tuple[Any, ...]:
    n_layers, characters, bits = SIZES[size]
    rng = np.random.default_rng(0)
    return (
        rng.uniform(-1, 1, (n_layers, 2, 4, bits)),
        rng.uniform(-1, 1, (3, bits)),
        rng.uniform(-1, 1, (n_layers, 2, bits)),
        rng.integers(0, 2, (characters, bits)).astype(float),
    )


@njit(error_model="numpy")
def by_hand(layers, ends, state, sequence):  # type: ignore[no-untyped-def]
    """(layers_bar, ends_bar). Keeps the gates and tanh of the cells; the rest is computed again from them."""
    n_layers, bits = layers.shape[0], layers.shape[3]
    steps = sequence.shape[0] - 1
    kept = np.empty((steps, n_layers, 5, bits))  # forget, in, out, change, tanh of the cell
    cells = np.empty((steps + 1, n_layers, bits))
    hiddens = np.empty((steps + 1, n_layers, bits))
    shares = np.empty((steps, bits))  # the softmax, with 2 in its sum
    for layer in range(n_layers):
        for j in range(bits):
            hiddens[0, layer, j] = state[layer, 0, j]
            cells[0, layer, j] = state[layer, 1, j]
    x = np.empty(bits)
    for t in range(steps):
        for j in range(bits):
            x[j] = sequence[t, j] * ends[0, j]
        for layer in range(n_layers):
            w, b, keep = layers[layer, 0], layers[layer, 1], kept[t, layer]
            h, h_after, c, c_after = hiddens[t, layer], hiddens[t + 1, layer], cells[t, layer], cells[t + 1, layer]
            for j in range(bits):
                keep[0, j] = 1 / (1 + math.exp(-(x[j] * w[0, j] + b[0, j])))
                keep[1, j] = 1 / (1 + math.exp(-(h[j] * w[1, j] + b[1, j])))
                keep[2, j] = 1 / (1 + math.exp(-(x[j] * w[2, j] + b[2, j])))
                keep[3, j] = math.tanh(h[j] * w[3, j] + b[3, j])
                c_after[j] = c[j] * keep[0, j] + keep[1, j] * keep[3, j]
                keep[4, j] = math.tanh(c_after[j])
                h_after[j] = keep[2, j] * keep[4, j]
                x[j] = h_after[j]
        total = 2.0
        for j in range(bits):
            shares[t, j] = math.exp(x[j] * ends[1, j] + ends[2, j])
            total += shares[t, j]
        for j in range(bits):
            shares[t, j] /= total
    layers_bar, ends_bar = np.zeros_like(layers), np.zeros_like(ends)
    hidden_bar, cell_bar = np.zeros((n_layers, bits)), np.zeros((n_layers, bits))
    scale = -1 / (steps * bits)
    x_bar = np.empty(bits)
    for t in range(steps - 1, -1, -1):
        gold = 0.0
        for j in range(bits):
            gold += sequence[t + 1, j]
        for j in range(bits):
            predicted_bar = scale * (sequence[t + 1, j] - gold * shares[t, j])
            ends_bar[1, j] += predicted_bar * hiddens[t + 1, n_layers - 1, j]
            ends_bar[2, j] += predicted_bar
            x_bar[j] = predicted_bar * ends[1, j]
        for layer in range(n_layers - 1, -1, -1):
            w, w_bar, b_bar, keep = layers[layer, 0], layers_bar[layer, 0], layers_bar[layer, 1], kept[t, layer]
            h, c = hiddens[t, layer], cells[t, layer]
            for j in range(bits):
                below = hiddens[t + 1, layer - 1, j] if layer > 0 else sequence[t, j] * ends[0, j]
                forget, ingate, outgate, change, tanh = keep[0, j], keep[1, j], keep[2, j], keep[3, j], keep[4, j]
                h_bar = hidden_bar[layer, j] + x_bar[j]
                c_bar = cell_bar[layer, j] + h_bar * outgate * (1 - tanh * tanh)
                forget_bar = c_bar * c[j] * forget * (1 - forget)
                in_bar = c_bar * change * ingate * (1 - ingate)
                out_bar = h_bar * tanh * outgate * (1 - outgate)
                change_bar = c_bar * ingate * (1 - change * change)
                w_bar[0, j] += forget_bar * below
                w_bar[1, j] += in_bar * h[j]
                w_bar[2, j] += out_bar * below
                w_bar[3, j] += change_bar * h[j]
                b_bar[0, j] += forget_bar
                b_bar[1, j] += in_bar
                b_bar[2, j] += out_bar
                b_bar[3, j] += change_bar
                x_bar[j] = forget_bar * w[0, j] + out_bar * w[2, j]
                hidden_bar[layer, j] = in_bar * w[1, j] + change_bar * w[3, j]
                cell_bar[layer, j] = c_bar * forget
        for j in range(bits):
            ends_bar[0, j] += x_bar[j] * sequence[t, j]
    return layers_bar, ends_bar


def in_cpp() -> Callable[..., Any]:
    derivative = native_code.derivative("lstm")

    def gradient(layers: Any, ends: Any, state: Any, sequence: Any) -> Any:
        bars = np.empty_like(layers), np.empty_like(ends)
        derivative(layers, ends, state, sequence, layers.shape[0], layers.shape[3], sequence.shape[0], *bars)
        return bars

    return gradient


def in_jax() -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    def loss(layers: Any, ends: Any, state: Any, sequence: Any) -> Any:
        def step(carried: Any, pair: Any) -> Any:
            hidden, cell = carried
            now, after = pair
            x = now * ends[0]
            hiddens, cells = [], []
            for layer in range(layers.shape[0]):
                weight, bias = layers[layer]
                forget = jax.nn.sigmoid(x * weight[0] + bias[0])
                ingate = jax.nn.sigmoid(hidden[layer] * weight[1] + bias[1])
                outgate = jax.nn.sigmoid(x * weight[2] + bias[2])
                change = jnp.tanh(hidden[layer] * weight[3] + bias[3])
                cells.append(cell[layer] * forget + ingate * change)
                x = outgate * jnp.tanh(cells[-1])
                hiddens.append(x)
            predicted = x * ends[1] + ends[2]
            normalised = predicted - jnp.log(2 + jnp.sum(jnp.exp(predicted)))
            return (jnp.stack(hiddens), jnp.stack(cells)), jnp.sum(after * normalised)

        _, terms = jax.lax.scan(step, (state[:, 0], state[:, 1]), (sequence[:-1], sequence[1:]))
        return -jnp.sum(terms) / ((sequence.shape[0] - 1) * sequence.shape[1])

    return jax.jit(jax.grad(loss, WRT))


def in_whole_arrays(lib: Any, sigmoid: Callable[..., Any]) -> Callable[..., Any]:
    """The program as libraries follow it that record each operation: `lib` has their functions of arrays."""

    def loss(layers: Any, ends: Any, state: Any, sequence: Any) -> Any:
        hidden, cell = list(state[:, 0]), list(state[:, 1])
        total = 0.0
        for t in range(sequence.shape[0] - 1):
            x = sequence[t] * ends[0]
            for layer in range(layers.shape[0]):
                weight, bias = layers[layer, 0], layers[layer, 1]
                forget = sigmoid(x * weight[0] + bias[0])
                ingate = sigmoid(hidden[layer] * weight[1] + bias[1])
                outgate = sigmoid(x * weight[2] + bias[2])
                change = lib.tanh(hidden[layer] * weight[3] + bias[3])
                cell[layer] = cell[layer] * forget + ingate * change
                x = hidden[layer] = outgate * lib.tanh(cell[layer])
            predicted = x * ends[1] + ends[2]
            normalised = predicted - lib.log(2 + lib.sum(lib.exp(predicted)))
            total = total + lib.sum(sequence[t + 1] * normalised)
        return -total / ((sequence.shape[0] - 1) * sequence.shape[1])

    return loss


def in_autograd() -> Callable[..., Any]:
    import autograd
    import autograd.numpy as anp

    return autograd.grad(in_whole_arrays(anp, lambda x: 1 / (1 + anp.exp(-x))), WRT)


def in_torch() -> Callable[..., Any]:
    import torch

    return torch_code.gradient(in_whole_arrays(torch, torch.sigmoid), WRT)
