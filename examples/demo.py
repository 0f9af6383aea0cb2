"""Two fits with exact derivatives of plain NumPy: a classifier of digits, and a nonlinear regression through SciPy.

`make demo` runs this. It needs no network: both data sets come with scikit-learn. The picture is demo.png in the
current folder. With RETROGRADE_QUICK set it does a small part of the work, for the tests.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from sklearn.datasets import load_diabetes, load_digits

from retrograde import Params, grad, gradient, hessian, ignore, param

QUICK = bool(os.environ.get("RETROGRADE_QUICK"))
EPOCHS = 3 if QUICK else 40
REPEATS = 5 if QUICK else 51
PICTURE = Path("demo.png")


def progress(items: Sequence[int], text: str) -> Iterator[int]:
    """The items, with a bar of whichever library is installed."""
    try:
        from rich.progress import track
    except ImportError:
        try:
            from tqdm import tqdm
        except ImportError:
            return iter(items)
        return iter(tqdm(items, text))
    return iter(track(items, f"  {text}"))


def seconds(f: Callable[[], Any], repeats: int) -> float:
    """The median time of a call."""
    f()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        f()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


# --- 1: a neural classifier, the Tracker way: parameters, mini-batches, an optimiser in four lines -----------------


class Split(NamedTuple):
    X: np.ndarray
    label: np.ndarray


class Classifier:
    """64 pixels → 48 tanh units → 10 logits."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.W1 = param(rng.normal(size=(64, 48)) / 8)
        self.b1 = param(np.zeros(48))
        self.W2 = param(rng.normal(size=(48, 10)) / 7)
        self.b2 = param(np.zeros(10))
        self.params = Params([self.W1, self.b1, self.W2, self.b2])

    def logits(self, X: np.ndarray) -> Any:
        return np.tanh(X @ self.W1 + self.b1) @ self.W2 + self.b2

    def loss(self, batch: Split) -> Any:
        """The mean cross-entropy, and a little weight decay."""
        z = self.logits(batch.X)
        likelihood = z[np.arange(len(z)), batch.label] - np.logaddexp.reduce(z, axis=1)
        return 1e-4 * (np.sum(self.W1**2) + np.sum(self.W2**2)) - np.mean(likelihood)

    def predict(self, X: np.ndarray) -> np.ndarray:
        with ignore():
            return np.argmax(self.logits(X), axis=1)

    def accuracy(self, split: Split) -> float:
        return float(np.mean(self.predict(split.X) == split.label))


class Adam:
    """Kingma and Ba (2015), algorithm 1."""

    def __init__(self, params: Params, rate: float) -> None:
        self.rate = rate
        self.step = 0
        self.moments = {p: (np.zeros(p.shape), np.zeros(p.shape)) for p in params}

    def update(self, grads: Any) -> None:
        self.step += 1
        for p, g in grads.items():
            m, v = self.moments[p]
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            with ignore():
                p -= self.rate * (m / (1 - 0.9**self.step)) / (np.sqrt(v / (1 - 0.999**self.step)) + 1e-8)


def classify() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    digits = load_digits()
    order = rng.permutation(len(digits.target))
    X, label = digits.data[order] / 16, digits.target[order]
    train, test = Split(X[:1297], label[:1297]), Split(X[1297:], label[1297:])
    model = Classifier(rng)
    count = sum(p.size for p in model.params)
    print(f"\n1  Digits: {len(train.X)} images to learn from, {len(test.X)} to test; {count:,} parameters\n")

    optimiser = Adam(model.params, rate=3e-3)
    curve = []
    for epoch in progress(range(1, EPOCHS + 1), "epochs"):
        order = rng.permutation(len(train.X))
        for start in range(0, len(order), 64):
            chosen = order[start : start + 64]
            batch = Split(train.X[chosen], train.label[chosen])
            optimiser.update(gradient(lambda batch=batch: model.loss(batch), model.params))
        curve.append((model.accuracy(train), model.accuracy(test)))
        if epoch in (1, 5, 10, 20, EPOCHS):
            seen, unseen = curve[-1]
            print(f"   after epoch {epoch:2}: right on {seen:.1%} of the images seen, {unseen:.1%} of the others")

    check_gradient(model, train, rng)
    compare_with_differences(model, train, count)
    return {"curve": np.array(curve), "test": test, "predicted": model.predict(test.X)}


def check_gradient(model: Classifier, batch: Split, rng: np.random.Generator) -> None:
    """The derivative along one random direction of the whole parameter space, by the gradient and by differences."""
    directions = {p: rng.normal(size=p.shape) for p in model.params}
    grads = gradient(lambda: model.loss(batch), model.params)
    exact = sum(np.sum(grads[p] * d) for p, d in directions.items())

    def moved(h: float) -> float:
        with ignore():
            for p, d in directions.items():
                p += h * d
            value = float(model.loss(batch))
            for p, d in directions.items():
                p -= h * d
        return value

    # Central differences of fourth order: their own error is about 1e-12 of the loss over h.
    h = 1e-4
    differences = (8 * (moved(h) - moved(-h)) - (moved(2 * h) - moved(-2 * h))) / (12 * h)
    print(f"\n   derivative along a random direction   {exact:.12f}  by the gradient")
    print(f"                                         {differences:.12f}  by central differences of order 4")
    print(f"   relative difference                   {abs(exact - differences) / abs(exact):.1e}")


def compare_with_differences(model: Classifier, batch: Split, count: int) -> None:
    def value() -> Any:
        with ignore():
            return model.loss(batch)

    once = seconds(value, REPEATS)
    whole = seconds(lambda: gradient(lambda: model.loss(batch), model.params), REPEATS)
    forward = (count + 1) * once
    print(f"\n   one loss over {len(batch.X)} images              {once * 1e3:9.2f} ms")
    print(f"   loss and all {count:,} derivatives        {whole * 1e3:9.2f} ms   = {whole / once:.1f} losses")
    print(f"   by forward differences, extrapolated  {forward * 1e3:9.0f} ms   = {forward / whole:,.0f} × as long")


# --- 2: a nonlinear regression through scipy.optimize, with exact gradient and Hessian -----------------------------


class Curve:
    """The progress of diabetes within a year: a logistic curve of a weighted sum of ten measurements.

    The parameters are the lower end of the curve, the logarithms of its height and of the noise, and the weights.
    """

    def __init__(self) -> None:
        data = load_diabetes()
        self.names = data.feature_names
        self.X = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
        self.y = data.target
        y = self.y
        weights = np.zeros(len(self.names))
        self.start = np.concatenate([[y.min() / 100, np.log(np.ptp(y) / 100), np.log(y.std() / 100), 0.0], weights])

    def at(self, theta: Any, index: Any) -> Any:
        return 100 * (theta[0] + np.exp(theta[1]) / (1 + np.exp(-index)))

    def index(self, theta: Any) -> Any:
        return theta[3] + self.X @ theta[4:]

    def noise(self, theta: Any) -> Any:
        return 100 * np.exp(theta[2])

    def loss(self, theta: Any) -> Any:
        """Minus the logarithm of the likelihood, for each patient and up to a constant."""
        residual = (self.y - self.at(theta, self.index(theta))) / self.noise(theta)
        return np.mean(residual**2) / 2 + theta[2]


class Run(NamedTuple):
    """One minimisation: `trace` has the time and the value of each call of the loss."""

    given: str
    method: str
    result: Any
    trace: np.ndarray

    @property
    def label(self) -> str:
        return f"{self.method}, {self.given}"


def minimised(curve: Curve, given: str, method: str, **options: Any) -> Run:
    trace: list[tuple[float, float]] = []
    start = time.perf_counter()

    def loss(theta: np.ndarray) -> float:
        value = float(curve.loss(theta))
        trace.append((time.perf_counter() - start, value))
        return value

    result = minimize(loss, curve.start, method=method, tol=1e-9, **options)
    trace.append((time.perf_counter() - start, result.fun))
    return Run(given, method, result, np.array(trace))


def regress() -> tuple[Curve, list[Run]]:
    curve = Curve()
    print(f"\n2  Diabetes: its progress in {len(curve.y)} patients from {len(curve.names)} measurements, as a logistic")
    print(f"   curve of a weighted sum of them; {len(curve.start)} parameters by maximum likelihood\n")
    slope, curvature = grad(curve.loss), hessian(curve.loss)
    curvature(curve.start)  # its first call writes the code of the operators in use, which is no part of the race
    runs = [
        minimised(curve, "exact gradient and Hessian", "trust-exact", jac=slope, hess=curvature),
        minimised(curve, "exact gradient", "BFGS", jac=slope),
        minimised(curve, "no derivatives (differences)", "BFGS"),
    ]
    if not QUICK:
        limits = {"maxfev": 20_000, "maxiter": 20_000}
        runs.append(minimised(curve, "no derivatives (simplex)", "Nelder-Mead", options=limits))

    best = min(run.result.fun for run in runs)
    print(f"   {'given to scipy.optimize':30}  {'method':11}   f calls   f′   f″      time   loss above the least")
    for run in runs:
        exact = run.given.startswith("exact")
        first, second = run.result.njev if exact else "–", run.result.get("nhev", "–")
        print(
            f"   {run.given:30}  {run.method:11}  {run.result.nfev:8,}  {first:>3}  {second:>3}"
            f"  {run.trace[-1, 0] * 1e3:5.0f} ms   {run.result.fun - best:20.0e}"
        )

    call = seconds(lambda: curve.loss(curve.start), REPEATS)
    print(f"   One call of f takes {call * 1e6:.0f} µs here; where it takes longer, the number of calls decides.")

    theta = runs[0].result.x
    errors = np.sqrt(np.diag(covariance(curve, theta)))
    explained = 1 - np.var(curve.y - curve.at(theta, curve.index(theta))) / np.var(curve.y)
    strongest = 4 + np.argsort(-np.abs(theta[4:] / errors[4:]))[:4]
    print(f"\n   explained variance {explained:.1%}; the surest weights, with standard errors from the exact Hessian:")
    print("   " + ", ".join(f"{curve.names[i - 4]} {theta[i]:+.2f} ± {errors[i]:.2f}" for i in strongest))
    return curve, runs


def covariance(curve: Curve, theta: np.ndarray) -> np.ndarray:
    """Of the estimate: the inverse of the Hessian of minus the whole log-likelihood."""
    return np.linalg.inv(len(curve.y) * hessian(curve.loss, theta))


# --- 3: the picture ----------------------------------------------------------------------------------------------


def draw(classified: dict[str, Any], curve: Curve, runs: list[Run]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(12, 8.5), layout="constrained")
    (top_left, top_right), (low_left, low_right) = figure.subfigures(2, 2, wspace=0.04, hspace=0.04)
    draw_learning(top_left.subplots(), classified["curve"])
    draw_misread(top_right, classified["test"], classified["predicted"])
    draw_curve(low_left.subplots(), curve, runs[0].result.x)
    draw_race(low_right.subplots(), runs)
    figure.savefig(PICTURE, dpi=110)
    plt.close(figure)


def draw_learning(axes: Any, right: np.ndarray) -> None:
    epochs = np.arange(1, len(right) + 1)
    for column, label, colour in ((0, "the images it learns from", "C7"), (1, "images it has not seen", "C0")):
        axes.plot(epochs, 100 * (1 - right[:, column]), color=colour, label=label)
    axes.set(xlabel="epoch", ylabel="digits misread, %", title="A network learns to read digits", ylim=(0, None))
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)


def draw_misread(figure: Any, test: Split, predicted: np.ndarray) -> None:
    wrong = np.flatnonzero(predicted != test.label)
    figure.suptitle(f"{len(wrong)} of {len(test.label)} unseen digits misread: truth → answer", fontsize="large")
    for axes, i in zip(figure.subplots(2, 6).flat, [*wrong[:12], *[None] * 12]):
        axes.axis("off")
        if i is not None:
            axes.imshow(test.X[i].reshape(8, 8), cmap="gray_r")
            axes.set_title(f"{test.label[i]} → {predicted[i]}", fontsize="medium")


def draw_curve(axes: Any, curve: Curve, theta: np.ndarray) -> None:
    index, noise = curve.index(theta), curve.noise(theta)
    grid = np.linspace(index.min(), index.max(), 200)
    fit = curve.at(theta, grid)
    axes.scatter(index, curve.y, s=10, color="C7", alpha=0.6, linewidths=0, label="442 patients")
    axes.fill_between(grid, fit - noise, fit + noise, color="C0", alpha=0.15, linewidth=0, label="± standard deviation")
    axes.plot(grid, fit, color="C0", linewidth=2, label="fit")
    axes.set(xlabel="weighted sum of ten measurements", ylabel="progress of the disease after a year")
    axes.set_title("A logistic curve through SciPy's trust-exact")
    axes.legend(frameon=False, loc="upper left")


def draw_race(axes: Any, runs: list[Run]) -> None:
    best = min(run.trace[:, 1].min() for run in runs)
    for run in runs:
        seconds, values = run.trace.T
        axes.plot(seconds * 1e3, np.maximum(np.minimum.accumulate(values) - best, 1e-16), label=run.label)
    axes.set(xlabel="time, ms", ylabel="loss above the least one found, at least 1e-16", xscale="log", yscale="log")
    axes.set_title("The same fit with and without derivatives")
    axes.legend(frameon=False, fontsize="small", loc="lower left")
    axes.grid(alpha=0.3)


def main() -> None:
    start = time.perf_counter()
    classified = classify()
    curve, runs = regress()
    draw(classified, curve, runs)
    print(f"\n   picture: {PICTURE.resolve()}   ({time.perf_counter() - start:.0f} s in all)")


if __name__ == "__main__":
    main()
