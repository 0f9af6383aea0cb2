"""What each eval of the suite asks for. Inputs and outputs are described in its evals/*/README.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import retrograde as rg
from benchmarks.gradbench.descents import particle, saddle
from benchmarks.workloads import ba, det, gmm, ht, kmeans, llsq, lse, lstm, ode


class Task(NamedTuple):
    """A function of an eval.

    Attributes:
        prepare: from the input of a message to the arguments of `run`; not timed.
        run: what is timed.
        report: from the result to what JSON can hold; not timed.
        compiles: whether the first run compiles.
    """

    prepare: Callable[[Any], tuple[Any, ...]]
    run: Callable[..., Any]
    report: Callable[[Any], Any]
    compiles: bool = True


def array(x: Any) -> Any:
    return np.array(x, dtype=float)


def listed(x: Any) -> Any:
    return x.tolist() if isinstance(x, np.ndarray | np.generic) else x


def native(program: Callable[..., Any], transform: Callable[[Any], Any] = lambda f: f) -> Callable[..., Any]:
    """A transform of a program by native code."""
    return transform(rg.compile(program))


def gradient(program: Callable[..., Any], wrt: Any = 0) -> Callable[..., Any]:
    return native(program, lambda f: rg.grad(f, wrt))


def value_and_gradient(program: Callable[..., Any], prepare: Callable[[Any], Any], names: tuple[str, str]) -> Any:
    """The two tasks of an eval that wants the gradient in the first argument."""
    return {names[0]: Task(prepare, native(program), listed), names[1]: Task(prepare, gradient(program), listed)}


PRIMAL = ("primal", "gradient")


def square(x):  # type: ignore[no-untyped-def]
    return x * x


# --- determinants ------------------------------------------------------------------------------------------------


def det_input(given: Any) -> tuple[Any, ...]:
    return (array(given["A"]).reshape(given["ell"], given["ell"]),)


# --- Gaussian mixtures -------------------------------------------------------------------------------------------


def gmm_input(given: Any) -> tuple[Any, ...]:
    k = given["k"]
    lower = array(given["l"]).reshape(k, -1)
    return (
        array(given["alpha"]),
        array(given["mu"]),
        array(given["q"]),
        lower,
        array(given["x"]),
        given["gamma"],
        given["m"],
    )


def gmm_report(bars: Any) -> Any:
    return dict(zip(("alpha", "mu", "q", "l"), map(listed, bars), strict=True))


# --- bundle adjustment -------------------------------------------------------------------------------------------


def weight_errors(weights):  # type: ignore[no-untyped-def]
    return 1 - weights * weights


def ba_input(given: Any) -> tuple[Any, ...]:
    n, m, p = given["n"], given["m"], given["p"]
    each = np.arange(p)
    cameras = np.tile(array(given["cam"]), (n, 1))[each % n]
    points = np.tile(array(given["x"]), (m, 1))[each % m]
    return (n, m, cameras, points, np.full(p, float(given["w"])), np.tile(array(given["feat"]), (p, 1)))


_errors, _pullback = native(ba.program), native(ba.program, lambda f: lambda *args: rg.pullback(f, *args))
_weight_errors = native(weight_errors)
_weight_pullback = native(weight_errors, lambda f: lambda weights: rg.pullback(f, weights))


def ba_objective(n: int, m: int, *args: Any) -> Any:
    return _errors(*args), _weight_errors(args[2])


def ba_objective_report(errors: Any) -> Any:
    seen, weights = errors
    return {
        "reproj_error": {"elements": seen[0].tolist(), "repeated": len(seen)},
        "w_err": {"element": float(weights[0]), "repeated": len(weights)},
    }


def ba_jacobian(n: int, m: int, *args: Any) -> Any:
    """The blocks of the observations, by two pullbacks, and the derivatives of the errors of the weights, by one."""
    errors, back = _pullback(*args)
    rows = []
    for row in range(2):
        seed = np.zeros_like(errors)
        seed[:, row] = 1
        cameras_bar, points_bar, weights_bar, _ = back(seed)
        rows.append(np.column_stack([cameras_bar, points_bar, weights_bar]))
    of_weights, back = _weight_pullback(args[2])
    return n, m, np.stack(rows, axis=1), back(np.ones_like(of_weights))[0]


def ba_jacobian_report(found: Any) -> Any:
    """The sparse matrix by rows, of which the suite compares the first thirty entries and the last."""
    n, m, blocks, of_weights = found
    p, _, width = blocks.shape
    block = [*range(11), *(11 * n + i for i in range(3)), 11 * n + 3 * m]
    starts = [width * min(row, 2 * p) + max(row - 2 * p, 0) for row in range(3 * p + 1)]
    return {
        "rows": [*starts[:30], starts[-1]],
        "cols": [*block, *block, 11 * n + 3 * m + p - 1],
        "vals": [*blocks[0].ravel().tolist(), float(of_weights[-1])],
    }


# --- recurrent networks ------------------------------------------------------------------------------------------


def lstm_input(given: Any) -> tuple[Any, ...]:
    main, state = array(given["main_params"]), array(given["state"])
    layers, bits = len(main) // 2, main.shape[1] // 4
    ends = array(given["extra_params"])
    return main.reshape(layers, 2, 4, bits), ends, state.reshape(layers, 2, bits), array(given["sequence"])


def lstm_report(bars: Any) -> Any:
    return np.concatenate([bar.ravel() for bar in bars]).tolist()


# --- hands -------------------------------------------------------------------------------------------------------


def ht_input(given: Any) -> tuple[Any, ...]:
    model = given["data"]["model"]
    if model["is_mirrored"]:
        raise NotImplementedError("mirrored hands, of which the suite has none")
    owners = np.array(given["data"]["correspondences"])
    us, triangles = array(given["us"]), np.array(model["triangles"])
    if not us.size:
        # Each point belongs to a vertex: a triangle with that vertex in all of its corners.
        us, triangles = np.zeros((len(owners), 2)), np.repeat(owners[:, None], 3, axis=1)
        owners = np.arange(len(owners))
    shapes = array(model["base_relatives"]), array(model["inverse_base_absolutes"])
    skin = array(model["base_positions"]).T.copy(), array(model["weights"]).T.copy()
    parents = np.array(model["parents"])
    points = array(given["data"]["points"])
    args = (array(given["theta"]), us, parents, *shapes, *skin, triangles, owners, points)
    return (bool(np.size(given["us"])), *args)


def ht_jacobian(f: Callable[..., Any]) -> Callable[..., Any]:
    """The columns of the pose; and before them those of the barycentric coordinates, of which each moves one point."""

    def jacobian(has_us: bool, theta: Any, us: Any, *data: Any) -> Any:
        columns = rg.jacobian(lambda theta: f(theta, us, *data), theta).reshape(-1, len(theta))
        if not has_us:
            return columns
        directions = np.eye(2)[:, None, :] * np.ones_like(us)
        of_us = [rg.jvp(lambda us: f(theta, us, *data), (us,), (direction,))[1].ravel() for direction in directions]
        return np.column_stack([*of_us, columns])

    return jacobian


# --- clusters ----------------------------------------------------------------------------------------------------


def kmeans_input(given: Any) -> tuple[Any, ...]:
    return array(given["points"]), array(given["centroids"])


def kmeans_direction(f: Callable[..., Any]) -> Callable[..., Any]:
    """Newton's step; the Hessian is diagonal, so that its product with ones is all of it."""

    def direction(points: Any, centroids: Any) -> Any:
        slope, curvature = rg.jvp(lambda c: rg.grad(f, 1)(points, c), (centroids,), (np.ones_like(centroids),))
        return slope / curvature

    return direction


EVALS: dict[str, dict[str, Task]] = {
    "hello": value_and_gradient(square, lambda x: (float(x),), ("square", "double")),
    "llsq": value_and_gradient(llsq.program, lambda g: (array(g["x"]), g["n"]), PRIMAL),
    "lse": value_and_gradient(lse.program, lambda g: (array(g["x"]),), PRIMAL),
    "ode": value_and_gradient(ode.program, lambda g: (array(g["x"]), g["s"]), PRIMAL)
    | {"primal": Task(lambda g: (array(g["x"]), g["s"]), native(ode.solution), listed)},
    "det": {
        "primal": Task(det_input, native(det.program), listed),
        "gradient": Task(det_input, gradient(det.program), lambda g: g.ravel().tolist()),
    },
    "gmm": {
        "objective": Task(gmm_input, native(gmm.program), listed),
        "jacobian": Task(gmm_input, gradient(gmm.program, gmm.WRT), gmm_report),
    },
    "ba": {
        "objective": Task(ba_input, ba_objective, ba_objective_report),
        "jacobian": Task(ba_input, ba_jacobian, ba_jacobian_report),
    },
    "lstm": {
        "objective": Task(lstm_input, native(lstm.program), listed),
        "jacobian": Task(lstm_input, gradient(lstm.program, lstm.WRT), lstm_report),
    },
    "ht": {
        "objective": Task(
            ht_input, native(ht.program, lambda f: lambda _, *args: f(*args)), lambda e: e.ravel().tolist()
        ),
        "jacobian": Task(ht_input, native(ht.program, ht_jacobian), listed),
    },
    "kmeans": {
        "cost": Task(kmeans_input, native(kmeans.program), listed),
        "dir": Task(kmeans_input, native(kmeans.program, kmeans_direction), listed),
    },
    "particle": {
        modes: Task(lambda g: (float(g["w"]),), lambda w, modes=modes: particle(w, modes), listed, False)
        for modes in ("ff", "fr", "rf", "rr")
    },
    "saddle": {
        modes: Task(lambda g: (array(g["start"]),), lambda start, modes=modes: saddle(start, modes), listed, False)
        for modes in ("ff", "fr", "rf", "rr")
    },
}
