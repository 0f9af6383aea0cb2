"""Functions of arrays for `rule_speed`: each as users call it, and its gradient as a person would write it in NumPy.

The gradients by hand are what one would write for speed who knows the function and nothing else: formulas share what
they can, temporaries are written to again, every result is an array of its own, the value is NumPy's to the last bit
(so that squares whose sum is a variance are added in pairs, and not by a dot product). Elements that tie share their
cotangent equally, which is the convention; of zeros, NaN and infinities they do not take the care that our rules take.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Gradient = tuple[Any, ...]  # the value, and a gradient for each argument


@dataclass(frozen=True)
class Race:
    """A function whose result is contracted with `w` to one number, unless it is one itself (then `w` is None)."""

    name: str
    f: Callable[..., Any]  # f(xp, *args), for NumPy's namespace and autograd's
    by_hand: Callable[..., Gradient]  # by_hand(*args, w)
    args: tuple[np.ndarray, ...]
    w: np.ndarray | None
    torch: Callable[..., Any] | None = None  # f(torch, *args), where it is written in another way there
    peers: tuple[str, ...] = ("autograd", "PyTorch")
    more: str = ""  # what our rule does that the gradient by hand does not, where that shows in the time


TAIL = "the slope keeps its digits in the tails, where 1 - y² loses them: they are looked for and computed again"
RANGE = "zeros, overflow and underflow are looked for, where the quick formula fails: a pass or two"


def elementwise_races(n: int) -> list[Race]:
    rng = np.random.default_rng(0)
    x, y, w = rng.uniform(0.2, 2.0, n), rng.uniform(0.2, 2.0, n), rng.standard_normal(n)
    signed, other = rng.standard_normal(n), rng.standard_normal(n)
    mask = rng.random(n) < 0.5

    def exp(x: Any, w: Any) -> Gradient:
        y = np.exp(x)
        value = np.vdot(y, w)
        y *= w
        return value, y

    def log(x: Any, w: Any) -> Gradient:
        return np.vdot(np.log(x), w), w / x

    def sin(x: Any, w: Any) -> Gradient:
        value = np.vdot(np.sin(x), w)
        x_bar = np.cos(x)
        x_bar *= w
        return value, x_bar

    def tanh(x: Any, w: Any) -> Gradient:
        y = np.tanh(x)
        value = np.vdot(y, w)
        y *= y
        np.subtract(1.0, y, out=y)
        y *= w
        return value, y

    def arctan(x: Any, w: Any) -> Gradient:
        value = np.vdot(np.arctan(x), w)
        x_bar = x * x
        x_bar += 1.0
        return value, np.divide(w, x_bar, out=x_bar)

    def sqrt(x: Any, w: Any) -> Gradient:
        y = np.sqrt(x)
        value = np.vdot(y, w)
        y += y
        return value, np.divide(w, y, out=y)

    def square(x: Any, w: Any) -> Gradient:
        value = np.vdot(x * x, w)
        x_bar = x * w
        x_bar *= 2.0
        return value, x_bar

    def absolute(x: Any, w: Any) -> Gradient:
        value = np.vdot(np.abs(x), w)
        x_bar = np.sign(x)
        x_bar *= w
        return value, x_bar

    def clip(x: Any, w: Any) -> Gradient:
        value = np.vdot(np.clip(x, -1.0, 1.0), w)
        x_bar = w * ((x > -1.0) & (x < 1.0))
        tied = (x == -1.0) | (x == 1.0)
        if tied.any():
            x_bar[tied] = 0.5 * w[tied]
        return value, x_bar

    def cube(x: Any, w: Any) -> Gradient:
        value = np.vdot(x**3, w)
        x_bar = x * x
        x_bar *= 3.0
        x_bar *= w
        return value, x_bar

    def power(x: Any, y: Any, w: Any) -> Gradient:
        p = x**y
        value = np.vdot(p, w)
        p *= w
        y_bar = np.log(x)
        y_bar *= p
        p *= y
        p /= x
        return value, p, y_bar

    def add(x: Any, y: Any, w: Any) -> Gradient:
        return np.vdot(x + y, w), w.copy(), w.copy()

    def subtract(x: Any, y: Any, w: Any) -> Gradient:
        return np.vdot(x - y, w), w.copy(), -w

    def multiply(x: Any, y: Any, w: Any) -> Gradient:
        return np.vdot(x * y, w), w * y, w * x

    def divide(x: Any, y: Any, w: Any) -> Gradient:
        q = x / y
        value = np.vdot(q, w)
        x_bar = w / y
        q *= x_bar
        return value, x_bar, np.negative(q, out=q)

    def maximum(x: Any, y: Any, w: Any) -> Gradient:
        value = np.vdot(np.maximum(x, y), w)
        x_bar = w * (x > y)
        tied = x == y
        if tied.any():
            x_bar[tied] = 0.5 * w[tied]
        return value, x_bar, w - x_bar

    def where(x: Any, y: Any, w: Any) -> Gradient:
        value = np.vdot(np.where(mask, x, y), w)
        x_bar = w * mask
        return value, x_bar, w - x_bar

    def hypot(x: Any, y: Any, w: Any) -> Gradient:
        h = np.hypot(x, y)
        value = np.vdot(h, w)
        np.divide(w, h, out=h)
        y_bar = h * y
        h *= x
        return value, h, y_bar

    def arctan2(x: Any, y: Any, w: Any) -> Gradient:
        value = np.vdot(np.arctan2(x, y), w)
        square = x * x
        square += y * y
        np.divide(w, square, out=square)
        x_bar = square * y
        square *= x
        return value, x_bar, np.negative(square, out=square)

    def logaddexp(x: Any, y: Any, w: Any) -> Gradient:
        z = np.logaddexp(x, y)
        value = np.vdot(z, w)
        np.subtract(x, z, out=z)
        np.exp(z, out=z)
        z *= w
        return value, z, w - z

    def torch_where(torch: Any, x: Any, y: Any) -> Any:
        return torch.where(torch.from_numpy(mask), x, y)

    return [
        Race("exp", lambda xp, x: xp.exp(x), exp, (x,), w),
        Race("log", lambda xp, x: xp.log(x), log, (x,), w),
        Race("sin", lambda xp, x: xp.sin(x), sin, (x,), w),
        Race("tanh", lambda xp, x: xp.tanh(x), tanh, (signed,), w, more=TAIL),
        Race("arctan", lambda xp, x: xp.arctan(x), arctan, (signed,), w),
        Race("sqrt", lambda xp, x: xp.sqrt(x), sqrt, (x,), w),
        Race("square", lambda xp, x: xp.square(x), square, (x,), w),
        Race("abs", lambda xp, x: xp.abs(x), absolute, (signed,), w),
        Race("clip", lambda xp, x: xp.clip(x, -1.0, 1.0), clip, (signed,), w),
        Race("x ** 3", lambda xp, x: x**3, cube, (x,), w),
        Race("x ** y", lambda xp, x, y: x**y, power, (x, y), w, more=RANGE),
        Race("add", lambda xp, x, y: x + y, add, (x, y), w),
        Race("subtract", lambda xp, x, y: x - y, subtract, (x, y), w),
        Race("multiply", lambda xp, x, y: x * y, multiply, (x, y), w),
        Race("divide", lambda xp, x, y: x / y, divide, (x, y), w),
        Race("maximum", lambda xp, x, y: xp.maximum(x, y), maximum, (signed, other), w),
        Race("where", lambda xp, x, y: xp.where(mask, x, y), where, (x, y), w, torch_where),
        Race("hypot", lambda xp, x, y: xp.hypot(x, y), hypot, (x, y), w),
        Race("arctan2", lambda xp, x, y: xp.arctan2(x, y), arctan2, (signed, other), w, more=RANGE),
        Race("logaddexp", lambda xp, x, y: xp.logaddexp(x, y), logaddexp, (signed, other), w),
    ]


def reduction_races(n: int) -> list[Race]:
    rng = np.random.default_rng(1)
    x, signed = rng.uniform(0.2, 2.0, n), rng.standard_normal(n)
    side = int(n**0.5)
    matrix, w_rows = rng.standard_normal((side, side)), rng.standard_normal(side)
    near_one, w = np.exp(1e-3 * signed), rng.standard_normal(n)

    def total(x: Any, w: Any) -> Gradient:
        return np.sum(x), np.ones_like(x)

    def total_of_rows(x: Any, w: Any) -> Gradient:
        return np.vdot(np.sum(x, axis=1), w), np.array(np.broadcast_to(w[:, None], x.shape))

    def mean(x: Any, w: Any) -> Gradient:
        return np.mean(x), np.full_like(x, 1 / x.size)

    def var(x: Any, w: Any) -> Gradient:
        x_bar = x - np.mean(x)
        value = np.mean(np.square(x_bar))
        x_bar *= 2 / x.size
        return value, x_bar

    def std(x: Any, w: Any) -> Gradient:
        x_bar = x - np.mean(x)
        value = np.sqrt(np.mean(np.square(x_bar)))
        x_bar *= 1 / (x.size * value)
        return value, x_bar

    def largest(x: Any, w: Any) -> Gradient:
        value = np.max(x)
        places = np.flatnonzero(x == value)
        x_bar = np.zeros_like(x)
        x_bar[places] = 1.0 / len(places)
        return value, x_bar

    def largest_of_rows(x: Any, w: Any) -> Gradient:
        y = np.max(x, axis=1)
        places = np.flatnonzero(x == y[:, None])
        rows = places // x.shape[1]
        x_bar = np.zeros_like(x)
        x_bar.reshape(-1)[places] = (w / np.bincount(rows))[rows]
        return np.vdot(y, w), x_bar

    def product(x: Any, w: Any) -> Gradient:
        value = np.prod(x)
        return value, value / x

    def norm(x: Any, w: Any) -> Gradient:
        value = np.linalg.norm(x)
        return value, x / value

    def norm_of_rows(x: Any, w: Any) -> Gradient:
        y = np.linalg.norm(x, axis=1)
        return np.vdot(y, w), x * (w / y)[:, None]

    def cumsum(x: Any, w: Any) -> Gradient:
        return np.vdot(np.cumsum(x), w), np.cumsum(w[::-1])[::-1]

    def cumprod(x: Any, w: Any) -> Gradient:
        y = np.cumprod(x)
        value = np.vdot(y, w)
        y *= w
        x_bar = np.cumsum(y[::-1], out=y[::-1])[::-1]
        x_bar /= x
        return value, x_bar

    def sort(x: Any, w: Any) -> Gradient:
        order = np.argsort(x)
        x_bar = np.empty_like(x)
        x_bar[order] = w
        return np.vdot(x[order], w), x_bar

    def median(x: Any, w: Any) -> Gradient:
        middle = x.size // 2
        order = np.argpartition(x, (middle - 1, middle))
        x_bar = np.zeros_like(x)
        x_bar[order[middle - 1]] = x_bar[order[middle]] = 0.5
        return 0.5 * (x[order[middle - 1]] + x[order[middle]]), x_bar

    def torch_median(torch: Any, x: Any) -> Any:
        return torch.quantile(x, 0.5)

    return [
        Race("sum", lambda xp, x: xp.sum(x), total, (x,), None),
        Race("sum, axis=1", lambda xp, x: xp.sum(x, axis=1), total_of_rows, (matrix,), w_rows),
        Race("mean", lambda xp, x: xp.mean(x), mean, (x,), None),
        Race("var", lambda xp, x: xp.var(x), var, (x,), None, lambda torch, x: torch.var(x, correction=0)),
        Race("std", lambda xp, x: xp.std(x), std, (x,), None, lambda torch, x: torch.std(x, correction=0)),
        Race("max", lambda xp, x: xp.max(x), largest, (signed,), None),
        Race("max, axis=1", lambda xp, x: xp.max(x, axis=1), largest_of_rows, (matrix,), w_rows,
             lambda torch, x: torch.amax(x, 1)),
        Race("prod", lambda xp, x: xp.prod(x), product, (near_one,), None),
        Race("norm", lambda xp, x: xp.linalg.norm(x), norm, (signed,), None),
        Race("norm, axis=1", lambda xp, x: xp.linalg.norm(x, axis=1), norm_of_rows, (matrix,), w_rows,
             lambda torch, x: torch.linalg.norm(x, dim=1)),
        Race("cumsum", lambda xp, x: xp.cumsum(x), cumsum, (signed,), w, lambda torch, x: torch.cumsum(x, 0)),
        Race("cumprod", lambda xp, x: xp.cumprod(x), cumprod, (near_one,), w, lambda torch, x: torch.cumprod(x, 0),
             more=RANGE),
        Race("sort", lambda xp, x: xp.sort(x), sort, (signed,), w, lambda torch, x: torch.sort(x)[0]),
        Race("median", lambda xp, x: xp.median(x), median, (signed[: n // 2 * 2],), None, peers=()),
    ]  # fmt: skip


def moving_races(n: int) -> list[Race]:
    """Functions that move elements, read some of them, or add some up."""
    rng = np.random.default_rng(2)
    x, y, w = rng.standard_normal(n), rng.standard_normal(n), rng.standard_normal(n)
    w2 = rng.standard_normal(2 * n)
    side = int(n**0.5)
    matrix, w_matrix = rng.standard_normal((side, side)), rng.standard_normal((side, side))
    row = rng.standard_normal(side)
    places, mask = rng.integers(0, n, n), rng.random(n) < 0.5
    w_masked, w_padded = rng.standard_normal(np.count_nonzero(mask)), rng.standard_normal((side + 6, side + 6))

    def concatenate(x: Any, y: Any, w: Any) -> Gradient:
        return np.vdot(np.concatenate([x, y]), w), w[: len(x)].copy(), w[len(x) :].copy()

    def stack(x: Any, y: Any, w: Any) -> Gradient:
        return np.vdot(np.stack([x, y]), w), w[: len(x)].copy(), w[len(x) :].copy()

    def reshape(x: Any, w: Any) -> Gradient:
        return np.vdot(x.reshape(-1), w), w.reshape(x.shape).copy()

    def transpose(x: Any, w: Any) -> Gradient:
        return np.vdot(x.T, w), np.array(w.T)

    def flip(x: Any, w: Any) -> Gradient:
        return np.vdot(x[::-1], w), w[::-1].copy()

    def roll(x: Any, w: Any) -> Gradient:
        return np.vdot(np.roll(x, 7), w), np.roll(w, -7)

    def pad(x: Any, w: Any) -> Gradient:
        return np.vdot(np.pad(x, 3), w), w[3:-3, 3:-3].copy()

    def repeat(x: Any, w: Any) -> Gradient:
        return np.vdot(np.repeat(x, 2), w), w[::2] + w[1::2]

    def tile(x: Any, w: Any) -> Gradient:
        return np.vdot(np.tile(x, 2), w), w[: len(x)] + w[len(x) :]

    def broadcast_to(x: Any, w: Any) -> Gradient:
        return np.vdot(np.broadcast_to(x, w.shape), w), np.sum(w, axis=0)

    def diff(x: Any, w: Any) -> Gradient:
        x_bar = np.empty_like(x)
        x_bar[0], x_bar[-1] = -w[0], w[-1]
        np.subtract(w[:-1], w[1:], out=x_bar[1:-1])
        return np.vdot(np.diff(x), w), x_bar

    def slices(x: Any, w: Any) -> Gradient:
        x_bar = np.zeros_like(x)
        x_bar[1:-1] = w
        return np.vdot(x[1:-1], w), x_bar

    def fancy(x: Any, w: Any) -> Gradient:
        return np.vdot(x[places], w), np.bincount(places, w, len(x))

    def masked(x: Any, w: Any) -> Gradient:
        x_bar = np.zeros_like(x)
        x_bar[mask] = w
        return np.vdot(x[mask], w), x_bar

    def take(x: Any, w: Any) -> Gradient:
        return np.vdot(np.take(x, places), w), np.bincount(places, w, len(x))

    def take_torch(torch: Any, x: Any) -> Any:
        return torch.take(x, torch.from_numpy(places))

    return [
        Race("concatenate", lambda xp, x, y: xp.concatenate([x, y]), concatenate, (x, y), w2),
        Race("stack", lambda xp, x, y: xp.stack([x, y]), stack, (x, y), w2),
        Race("reshape", lambda xp, x: xp.reshape(x, (-1,)), reshape, (matrix,), w_matrix.reshape(-1)),
        Race("transpose", lambda xp, x: x.T, transpose, (matrix,), w_matrix),
        Race("flip", lambda xp, x: xp.flip(x, (0,)), flip, (x,), w, peers=("PyTorch",)),
        Race("roll", lambda xp, x: xp.roll(x, 7), roll, (x,), w),
        Race("pad", lambda xp, x: xp.pad(x, 3, "constant"), pad, (matrix,), w_padded,
             lambda torch, x: torch.nn.functional.pad(x, (3, 3, 3, 3))),
        Race("repeat", lambda xp, x: xp.repeat(x, 2), repeat, (x,), w2,
             lambda torch, x: torch.repeat_interleave(x, 2)),
        Race("tile", lambda xp, x: xp.tile(x, 2), tile, (x,), w2),
        Race("broadcast_to", lambda xp, x: xp.broadcast_to(x, w_matrix.shape), broadcast_to, (row,), w_matrix),
        Race("diff", lambda xp, x: xp.diff(x), diff, (x,), w[1:].copy()),
        Race("x[1:-1]", lambda xp, x: x[1:-1], slices, (x,), w[2:].copy()),
        Race("x[integers]", lambda xp, x: x[places], fancy, (x,), w),
        Race("x[mask]", lambda xp, x: x[mask], masked, (x,), w_masked),
        Race("take", lambda xp, x: xp.take(x, places), take, (x,), w, take_torch, peers=("PyTorch",)),
    ]  # fmt: skip


def product_races(n: int) -> list[Race]:
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal(n), rng.standard_normal(n)
    side = int(n**0.5)
    a, b, w_matrix = (rng.standard_normal((side, side)) for _ in range(3))
    thin, w_thin = rng.standard_normal((side, side // 10)), rng.standard_normal((side, side // 10))
    u, v, w = (rng.standard_normal(side) for _ in range(3))

    def dot(x: Any, y: Any, w: Any) -> Gradient:
        return np.dot(x, y), y.copy(), x.copy()

    def matvec(a: Any, x: Any, w: Any) -> Gradient:
        return np.vdot(a @ x, w), np.outer(w, x), w @ a

    def matmul(a: Any, b: Any, w: Any) -> Gradient:
        return np.vdot(a @ b, w), w @ b.T, a.T @ w

    def outer(x: Any, y: Any, w: Any) -> Gradient:
        return np.vdot(np.outer(x, y), w), w @ y, x @ w

    def einsum(a: Any, b: Any, w: Any) -> Gradient:
        return np.vdot(np.einsum("ij,ij->i", a, b), w), w[:, None] * b, w[:, None] * a

    return [
        Race("dot", lambda xp, x, y: xp.dot(x, y), dot, (x, y), None),
        Race("matrix @ vector", lambda xp, a, x: a @ x, matvec, (a, u), w),
        Race("matmul", lambda xp, a, b: xp.matmul(a, b), matmul, (a, thin), w_thin),
        Race("outer", lambda xp, x, y: xp.outer(x, y), outer, (u, v), w_matrix),
        Race('einsum "ij,ij->i"', lambda xp, a, b: xp.einsum("ij,ij->i", a, b), einsum, (a, b), w),
    ]
