"""Every keyword of every function that has a rule: it is right in both modes, or it is refused by its name.

Nothing is written down function by function. The calls that a rule lists as its points are made again with each
argument of the function's signature (of ufuncs: those that all ufuncs take) set to each of the values that NumPy
accepts there from `VALUES`. What gives another value than NumPy, or another derivative than differences, has ignored
the argument; what raises must name it. An argument for which no value was tried fails as well.
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from sampling import Point, Slot, _fill, points

import retrograde.rules
from retrograde import jvp, pullback
from retrograde.errors import RetrogradeError
from retrograde.rules.table import RULES, Elementwise, NoGradient, Rule
from retrograde.trace.structure import flatten, map_leaves

if importlib.util.find_spec("scipy") is not None:
    retrograde.rules.load_scipy()

_AXES = [None, 0, 1, -1, (0, 1), (1, 0), (-1, -2), ()]
_FLAGS = [True, False]
_PLAIN = np.linspace(0.5, 1.5, 3)

VALUES: dict[str, list[Any]] = {
    "a_max": [None, 0.5],
    "a_min": [None, 0.1],
    "append": [0.5, np.ones(1)],
    "assume_unique": _FLAGS,
    "axes": [*_AXES, ([0], [1]), 2],
    "axis": _AXES,
    "axis1": [0, 1, -1],
    "axis2": [0, 1, -1],
    "axisa": [0, -1],
    "axisb": [0, -1],
    "axisc": [0, -1],
    "b": [None, 0.5, np.array([1.0, 2.0, 0.5])],
    "base": [2.0, np.array([2.0, 3.0])],
    "bias": _FLAGS,
    "bins": [3, [0.0, 0.5, 1.0]],
    "branch_cut": [2, 3],
    "casting": ["same_kind", "unsafe", "no"],
    "compute_uv": _FLAGS,
    "condition": [[True, False, True], [True, False]],
    "condlist": [[[True, False, True]], [[False, False, True], [True, True, False]]],
    "constant_values": [1.5, (1.0, 2.0)],
    "copy": [True, False, None],
    "correction": [1, 0.5],
    "cov": [True, "unscaled"],
    "ddof": [1, 0.5],
    "decimals": [0, -1],
    "default": [0.0, 1.5],
    "deg": [True, False, 1],
    "density": _FLAGS,
    "derivative": _FLAGS,
    "device": ["cpu", None],
    "diff_n": [0, 1],
    "discont": [None, 0.5, 4.0],
    "dtype": [np.float64, np.float32, np.complex128, np.longdouble, int],
    "dx": [0.5, 2],
    "edge_order": [1, 2],
    "end_values": [1.5],
    "endpoint": _FLAGS,
    "equal_nan": _FLAGS,
    "exact": _FLAGS,
    "extend": ["zero", "complex"],
    "fill_value": [0.5],
    "full": [True],
    "full_matrices": _FLAGS,
    "fweights": [np.arange(1, 4), np.arange(1, 5)],
    "hermitian": _FLAGS,
    "include_initial": _FLAGS,
    "ind": [1, 2],
    "increasing": _FLAGS,
    "indexing": ["xy", "ij"],
    "indices": [0, [0, 1], [[0, 1], [1, 0]]],
    "indices_or_sections": [1, [1], [1, 2]],
    "initial": [0.7, 2, -3.0],
    "interpolation": ["linear", "lower"],
    "k": [0, 1, -1],
    "keepdims": _FLAGS,
    "kind": ["quicksort", "stable", "introselect"],
    "kth": [0, 1, (0, 1)],
    "left": [None, 0.3],
    "m": [0, 1, 2],
    "M": [2, 3],
    "max": [None, 0.5],
    "mean": [np.zeros((1, 1)), 0.25],
    "method": ["linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf", "hazen", "weibull"],
    "min": [None, 0.1],
    "minlength": [0, 6],
    "mode": [
        *("raise", "wrap", "clip", "full", "same", "valid", "reduced", "complete", "r", "raw", "edge", "reflect"),
        *("symmetric", "mean", "linear_ramp", "minimum", "maximum", "median", "constant"),
    ],
    "N": [2, 5, None],
    "n": [0, 1, 2, 3, 4, 7],
    "nan": [0.0, 1.5],
    "neginf": [None, -3.0],
    "new_shape": [(4,), (2, 2)],
    "newshape": [(4,)],
    "norm": [None, "ortho", "forward", "backward", True],
    "num": [0, 1, 5],
    "obj": [0, 1],
    "offset": [0, 1, -1],
    "optimize": [*_FLAGS, "greedy", "optimal"],
    "ord": [None, 1, 2, -1, -2, 0, 3, 0.5, np.inf, -np.inf, "fro", "nuc"],
    "order": ["C", "F", "A", "K", None, 1, 2],
    "overwrite_input": _FLAGS,
    "p": [None, 1, 2, -2, "fro", np.inf, "nuc"],
    "pad_width": [1, (1, 2)],
    "period": [None, 2.0],
    "posinf": [None, 3.0],
    "prepend": [0.5, np.ones(1)],
    "q": [0.3, [0.2, 0.7], 30.0],
    "range": [(0.0, 1.0), (-1.0, 1.0), [(-1.5, 1.5), (-1.5, 1.5)]],
    "rcond": [None, 1e-10],
    "reflect_type": ["even", "odd"],
    "repeats": [2, 0],
    "repetition": _FLAGS,
    "reps": [2, (2, 1)],
    "return_counts": _FLAGS,
    "return_index": _FLAGS,
    "return_indices": _FLAGS,
    "return_inverse": _FLAGS,
    "return_sign": _FLAGS,
    "returned": _FLAGS,
    "retstep": _FLAGS,
    "right": [None, 0.3],
    "rowvar": _FLAGS,
    "rtol": [None, 1e-10],
    "s": [(2, 2), (3,), None],
    "shape": [(2,), (3, 3), (1,)],
    "shift": [1, -1, (1,), 0],
    "side": ["left", "right"],
    "signature": ["dd->d", "d->d"],
    "sorted": _FLAGS,
    "sparse": _FLAGS,
    "stable": _FLAGS,
    "stat_length": [1, 2],
    "subok": _FLAGS,
    "to_begin": [1.0, [1.0, 2.0]],
    "to_end": [1.0, [1.0, 2.0]],
    "tol": [None, 1e-10, 1000],
    "trim": ["f", "b", "fb"],
    "UPLO": ["L", "U", "l", "u"],
    "upper": _FLAGS,
    "window_shape": [1, 2],
    "writeable": _FLAGS,
    "xp": [np.array([0.0, 1.0, 2.0])],
}
# Which array, function or choice is meant is the call itself, which the points make.
ARE_THE_CALL = {
    *(
        "a",
        "a1",
        "a2",
        "ar1",
        "ar2",
        "arrays",
        "indices",
        "choices",
        "choicelist",
        "fp",
        "funclist",
        "func",
        "func1d",
        "roots",
    ),
    *(
        "destination",
        "source",
        "start",
        "stop",
        "step",
        "v",
        "v1",
        "v2",
        "values",
        "x",
        "y",
        "z",
        "zs",
        "object",
        "size",
    ),
    *("bin_edges", "d", "w", "seq_of_zeros", "weights", "aweights", "stop", "u", "array", "dtype_of", "tensor", "M1"),
}
UFUNC_KEYWORDS = ["where", "out", "dtype", "casting", "order", "subok", "signature", "axis", "axes", "keepdims"]
# Values that NumPy or SciPy accepts there and that do not mean anything.
MEANINGLESS = [("scipy.special.lambertw", "tol", 1000)]  # the value is good to no digit


def is_walked(rule: Rule) -> bool:
    """Not SciPy's ufuncs, whose keywords are those of all ufuncs, nor functions of Python's and of our own."""
    module = getattr(rule.function, "__module__", None) or ""
    if isinstance(rule, NoGradient) or module.startswith(("math", "retrograde")):
        return False
    return not isinstance(rule.function, np.ufunc) or getattr(np, rule.function.__name__, None) is rule.function


def keywords(rule: Rule) -> list[str]:
    if isinstance(rule.function, np.ufunc):
        return UFUNC_KEYWORDS
    try:
        parameters = inspect.signature(rule.function).parameters.values()
    except (TypeError, ValueError):  # written in C, in a NumPy that gives no signature
        return []
    skipped = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in parameters if p.kind not in skipped]


def values(name: str, point: Point, y: Any) -> list[Any]:
    """What is tried for an argument; what NumPy refuses is left out later."""
    shape = np.shape(point.leaves[0])
    if name == "where":
        mask = np.arange(int(np.prod(shape))).reshape(shape) % 4 != 1
        return [True, mask]
    if name == "out":
        parts = y if isinstance(y, tuple) else (y,)
        empty = tuple(np.empty(np.shape(part), np.result_type(part)) for part in parts)
        return [empty if isinstance(y, tuple) else empty[0]]
    if name in ("weights", "aweights"):
        whole = np.linspace(0.5, 1.5, int(np.prod(shape))).reshape(shape)
        return [whole, np.linspace(0.5, 1.5, shape[-1])] if shape else [whole]
    if name == "x" and shape:
        return [np.cumsum(np.linspace(0.5, 1.5, shape[-1]))]
    return VALUES.get(name, [])


def calls(rule: Rule, name: str, tries: int = 2) -> Iterator[tuple[Any, Point, Callable[..., Any], Any]]:
    """The value tried, the point, the call with it (of the leaves), and what NumPy gives; `tries` points a value."""
    function = rule.function
    done: dict[int, int] = {}
    for point in points(rule):
        if not point.leaves or point.single or (isinstance(rule, Elementwise) and point.label == "scalar"):
            continue
        if not isinstance(function, np.ufunc):
            try:
                bound = inspect.signature(function).bind(*point.args, **point.kwargs)
            except TypeError:
                continue
            if isinstance(bound.arguments.get(name), Slot | list) and _has_slot(bound.arguments[name]):
                continue
        y = _value(function, point, point.args, point.kwargs, point.leaves)
        for k, value in enumerate(values(name, point, y)):
            if done.get(k, 0) == tries or (rule.label, name, value) in MEANINGLESS:
                continue
            args, kwargs = point.args, {**point.kwargs, name: value}
            if not isinstance(function, np.ufunc) and name in bound.arguments:
                again = inspect.signature(function).bind(*point.args, **point.kwargs)
                again.arguments[name] = value
                args, kwargs = again.args, again.kwargs

            def called(*leaves: Any, args: Any = args, kwargs: Any = kwargs) -> Any:
                here = _fill({key: v for key, v in kwargs.items() if key != "out"}, list(leaves))
                return _by_name(rule)(
                    *_fill(args, list(leaves)), **here, **{k: v for k, v in kwargs.items() if k == "out"}
                )

            try:
                with np.errstate(all="ignore"):
                    want = y if name == "out" else called(*point.leaves)
            except Exception:  # whatever NumPy says to a value that it does not take
                continue
            if any(_is_float(part) and np.any(np.isnan(part)) for part in flatten(want)[0]):
                continue
            done[k] = done.get(k, 0) + 1
            yield value, point, called, want


def _has_slot(tree: Any) -> bool:
    return isinstance(tree, Slot) or (isinstance(tree, list | tuple) and any(map(_has_slot, tree)))


def _value(function: Any, point: Point, args: Any, kwargs: Any, leaves: Any) -> Any:
    with np.errstate(all="ignore"):
        return function(*_fill(args, list(leaves)), **_fill(kwargs, list(leaves)))


def _by_name(rule: Rule) -> Callable[..., Any]:
    """Some functions are taken over as attributes of their modules."""
    return (lambda *args, **kwargs: np.full_like(*args, **kwargs)) if rule.name == "full_like" else rule.function


def fault(name: str, point: Point, called: Callable[..., Any], want: Any) -> str | None:
    """What is wrong with a call, or None."""
    rng = np.random.default_rng(0)
    dots = tuple(_random(rng, x) for x in point.leaves)
    try:
        y, y_dot = jvp(called, point.leaves, dots)
        seed = map_leaves(lambda part: _random(rng, part) if _is_float(part) else np.zeros(np.shape(part)), y)
        x_bars = pullback(called, *point.leaves)[1](seed)
        if not _same(y, want):
            return f"the value is {y!r}, not {want!r}"
        h, tolerance = (3e-2, 3e-2) if any(_is_single(part) for part in flatten(want)[0]) else (1e-5, 1e-5)
        ahead, behind = (called(*map(_moved, point.leaves, dots, (t,) * len(dots))) for t in (h, -h))
    except RetrogradeError as error:
        return (
            None
            if any(word in str(error) for word in (name, "lose", "full_matrices"))
            else f"refused, but not by name: {error}"
        )
    except Exception as error:
        if name == "out" and "setting an array element" in str(error):
            return None  # NumPy's own words for a traced value written into an array
        return f"{type(error).__name__}: {error}"
    y_bars, y_dots = flatten(seed)[0], flatten(y_dot)[0]
    slopes = [
        (a - b) / (2 * h) if _is_float(a) else 0.0 for a, b in zip(flatten(ahead)[0], flatten(behind)[0], strict=True)
    ]
    wanted = sum(map(_inner, y_bars, slopes))
    for mode, found in (("forward", sum(map(_inner, y_bars, y_dots))), ("reverse", sum(map(_inner, x_bars, dots)))):
        if not np.isclose(found, wanted, rtol=tolerance, atol=tolerance, equal_nan=True):
            return f"the derivative in {mode} mode is {found}, by differences {wanted}"
    return None


def _random(rng: np.random.Generator, x: Any) -> Any:
    v = rng.uniform(-1, 1, np.shape(x))
    if np.iscomplexobj(x):
        v = v + 1j * rng.uniform(-1, 1, np.shape(x))
    return np.asarray(v, np.asarray(x).dtype)[()]


def _moved(x: Any, dot: Any, h: float) -> Any:
    return x + np.asarray(h * dot, np.asarray(x).dtype)


def _is_float(x: Any) -> bool:
    return np.asarray(x).dtype.kind in "fc"


def _is_single(x: Any) -> bool:
    return np.asarray(x).dtype in (np.float32, np.complex64)


def _inner(a: Any, b: Any) -> float:
    return 0.0 if a is None or b is None else float(np.sum(np.real(np.conj(a) * b)))


def _same(y: Any, want: Any) -> bool:
    """The same outputs, shapes, dtypes and, but for rounding, numbers."""
    ours, theirs = flatten(y)[0], flatten(want)[0]
    return len(ours) == len(theirs) and all(
        np.shape(a) == np.shape(b)
        and np.asarray(a).dtype == np.asarray(b).dtype
        and np.allclose(
            a, b, rtol=1e-5 if _is_single(b) else 1e-12, atol=1e-5 if _is_single(b) else 1e-12, equal_nan=True
        )
        for a, b in zip(ours, theirs, strict=True)
    )


WALKED = [pytest.param(rule, id=rule.label) for rule in RULES.values() if is_walked(rule)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("rule", WALKED)
def test_every_argument_is_right_or_refused_by_name(rule: Rule) -> None:
    faults, untried = [], []
    for name in keywords(rule):
        tried = 0
        for value, point, called, want in calls(rule, name):
            tried += 1
            wrong = fault(name, point, called, want)
            if wrong:
                faults.append(f"{name}={value!r} at {point.label}: {wrong}")
        if not tried and name not in ARE_THE_CALL and not isinstance(rule.function, np.ufunc):
            untried.append(name)
    assert faults == []
    assert [name for name in untried if not _is_an_array(rule, name)] == [], "values for these arguments are missing"


def _is_an_array(rule: Rule, name: str) -> bool:
    """Whether the points differentiate it."""
    for point in points(rule):
        try:
            bound = inspect.signature(rule.function).bind(*point.args, **point.kwargs)
        except TypeError:
            continue
        if _has_slot(bound.arguments.get(name)):
            return True
    return False


def test_the_walk_meets_many_functions_and_arguments() -> None:
    rules = [rule for rule in RULES.values() if is_walked(rule)]
    assert len(rules) > 280
    assert sum(len(keywords(rule)) for rule in rules) > 1200
