"""NumPy's functions and methods that write into an array, `ufunc.at`, and `out=` of everything that has it."""

from __future__ import annotations

import copy
import re
import textwrap
from typing import Any

import numpy as np
import pytest
from compared import WM, M, X, agrees, each
from numpy.lib.stride_tricks import as_strided
from truth import agree, close

from retrograde import (
    MutationError,
    RetrogradeError,
    UnsupportedArgumentError,
    gradient,
    hessian,
    hvp,
    jvp,
    param,
    pullback,
)

V = 0.9 * np.sin(1.0 + np.arange(6.0))
MASK = M > 0.2
for _shared in (V, MASK):
    _shared.flags.writeable = False

# Functions that complex numbers are compared, rounded or conjugated in: checked by differences.
_NOT_ANALYTIC = re.compile(
    r"max|min|clip|median|percentile|sort|partition|ptp|mod|logaddexp|//|%|round|hypot|nan|strided|var|std|vecdot|conj"
    r"|\.real|abs"
)


def program(statements: str, setup: str = "") -> Any:
    """A function of a matrix `A` and a vector `v` that runs the statements among values kept before and views."""
    body = textwrap.indent(statements.replace("; ", "\n"), "    ")
    source = (
        "def f(A, v):\n"
        "    v = v * 1.0\n"
        "    B = np.cos(A) * v[1]\n"
        "    kept, rows, flat = A * A, A[1:], A.ravel()\n"
        "    o0, o3, o4, o12 = [np.zeros(n, v.dtype) for n in ((), 3, 4, 12)]\n"
        "    o0[...] = v[1]; o3 += v[:3]; o4[0] = 2 * v[2]\n"
        f"{body}\n"
        "    total = np.sum(np.sin(A) * WM) + np.sum(kept * WM) + np.sum(B * WM * WM) + np.sum(v ** 3)\n"
        "    total = total + np.sum(o4 * o4 * WM[0]) + np.sum(o3 * o3 * WM[0, :3]) + o0 * o0\n"
        "    return total + np.sum(o12 * WM.ravel()) + np.sum(rows * rows) + np.sum(flat * WM.ravel())"
    )
    names = {"np": np, "WM": WM, "M": M, "mask": MASK, "tricks": np.lib.stride_tricks}
    exec(source, names)
    return names["f"]


@pytest.mark.parametrize(
    "statement",
    each("""
        np.copyto(A, B)
        np.copyto(A, v[:4])
        np.copyto(A, 2.0)
        np.copyto(A, B, where=mask)
        np.copyto(A, v[0], where=mask)
        np.copyto(A[1:], B[:2], where=mask[0])
        np.copyto(A, [v[0], 1.0, v[1], v[2]])
        np.copyto(o4, A[0])
        np.put(A, [0, 5, 5, -1], v)
        np.put(A, [[0, 50], [7, -3]], v[:2], mode='clip')
        np.put(A, [0, 50], v[0], mode='wrap')
        np.put(A, [3, 4], flat[1:3])
        np.put(A, [3], [])
        A.put([1, 2], v[:2])
        A.put([1, -20], [v[0], 2.0], mode='wrap')
        np.put_along_axis(A, np.array([[0], [1], [2]]), v[0], axis=1)
        np.put_along_axis(A, np.array([[0, 1], [1, 2], [2, 3]]), B[:, :2], 1)
        np.put_along_axis(A, np.array([1, 2, 3]), v[:3], None)
        np.place(A, mask, v)
        np.place(A, mask, v[:2])
        np.place(A, A > 0.2, np.copy(A))
        np.putmask(A, mask, v)
        np.putmask(A, mask, B)
        np.fill_diagonal(A, v[0])
        np.fill_diagonal(A, v[:3])
        np.fill_diagonal(A[:, :2], v[1], wrap=True)
        np.nan_to_num(A, copy=False)
        A.fill(v[0])
        A.flat[3] = v[0]
        A.flat[2:7] = v[:5]
        A.flat[[0, 3, 3]] = v[:3]
        A.flat[mask.ravel()] = v[0]
        A.flat = v
        A.flat[2:4] = []
        A.sort()
        A.sort(axis=0)
        A.partition(1)
        A.T[0] = v[:3]
        A.real = B
        A[:] = [A[2], A[0], A[1]]
        A[0, :2] = [A[1, 1], A[0, 0]]
        A.T[:] = [A[:, 3], A[:, 0], A[:, 1], A[:, 1]]
    """),
)
def test_functions_that_write_into_their_argument(statement):
    agrees(program(statement), M, V, analytic=not _NOT_ANALYTIC.search(statement))


@pytest.mark.parametrize(
    "statement",
    each("""
        np.multiply.at(A, [0, 0, 1], v[:4] + 2.0)
        np.multiply.at(A, (slice(None), [1, 1]), v[:2] + 2.0)
        np.divide.at(A, ([0, 0], [1, 1]), v[:2] + 3.0)
        np.power.at(A, ([0, 0], [1, 1]), 2)
        np.negative.at(A, ([0, 0, 0], [1, 1, 1]))
        np.sin.at(A, [0, 0])
        np.exp.at(A, (slice(None), [1, 1]))
        np.square.at(A, mask)
        np.cos.at(A, np.s_[1:, ::2])
        np.hypot.at(A, [0, 0], v[:4] + 2.0)
        np.maximum.at(A, [0, 0], v[:4])
        np.minimum.at(A, ([0, 0], [1, 1]), v[:2])
        np.fmax.at(A, [0, 0], v[:4])
        np.logaddexp.at(A, [0, 0], v[:4])
        np.add.at(A, (np.array([0, 0]), None, np.array([1, 1])), v[0])
        np.add.at(A.T[1:], [0, 0, 2], v[:3])
        np.multiply.at(A, np.array([], int), v[:4])
        np.add.at(o4, [0, 0, 1], v[0])
        np.multiply.at(o4, [0, 0, 1], 2.0)
    """),
)
def test_at_applies_a_function_as_often_as_the_key_names_a_place(statement):
    agrees(program(statement), M, V, analytic=not _NOT_ANALYTIC.search(statement))


@pytest.mark.parametrize(
    "statement",
    each("""
        np.sum(A, axis=0, out=o4)
        np.sum(A, 0, None, o4)
        A.sum(axis=0, out=o4)
        A.sum(0, None, o4)
        np.mean(A, axis=0, out=o4)
        np.prod(A, axis=0, out=o4)
        np.max(A, axis=0, out=o4)
        np.amin(A, 0, o4)
        A.max(0, o4)
        np.median(A, axis=0, out=o4)
        np.percentile(A, 30, axis=0, out=o4)
        np.var(A, axis=0, out=o4)
        A.std(axis=0, out=o4)
        np.nansum(A, axis=0, out=o4)
        np.ptp(A, axis=0, out=o4)
        np.cumsum(A, out=o12)
        np.cumsum(A, axis=1, out=A)
        A.cumprod(axis=1, out=A)
        np.maximum.accumulate(A, axis=0, out=A)
        np.add.accumulate(A, axis=0, out=A)
        np.add.reduce(A, axis=0, out=o4)
        np.multiply.reduce(A, axis=0, out=o4)
        np.multiply.outer(v[:3], v[:4], out=A)
        np.matmul(A, v[:4], out=o3)
        np.dot(A, v[:4], out=o3)
        np.dot(A, v[:4], o3)
        A.dot(v[:4], o3)
        np.vecdot(A, B, out=o3)
        np.outer(v[:3], v[:4], out=A)
        np.einsum('ij,j->i', A, v[:4], out=o3)
        np.linalg.multi_dot([A, np.ones((4, 2)), np.outer(v[:2], v[:4])], out=A)
        np.trace(A[:, :3], out=o0)
        np.take(A, [0, 2], axis=0, out=A[:2])
        A.take([0, 2], axis=0, out=A[:2])
        np.compress([True, False, True], A, axis=0, out=A[:2])
        np.choose([0, 1, 0, 1], [v[:4], v[1:5]], out=o4)
        np.concatenate([v[:2], v[2:4]], out=o4)
        np.stack([v[:4], v[1:5]], out=A[:2])
        np.clip(A, -0.5, 0.5, out=A)
        A.clip(-0.5, 0.5, out=A)
        np.round(o4 + 0.3, out=o4)
        np.conjugate(A, out=A)
        np.divmod(A + 0.05, 0.7, out=(A, B))
        np.add(A, B, out=A, where=mask)
        np.sqrt(A * A + 1.0, out=A, where=mask)
        np.log(A, out=A, where=A > 0.2)
        np.add(v[:4], 1.0, o4)
        np.add(v[:4], 1.0, out=A)
        r = np.sum(A, axis=0, out=o4); r *= v[0]
        np.sum(M, axis=0, out=o4)
        np.cumsum(np.ones(12), out=o12)
    """),
)
def test_out_takes_the_result_of_every_function_that_has_it(statement):
    agrees(program(statement), M, V, analytic=not _NOT_ANALYTIC.search(statement + "log"))


def test_out_of_a_function_returns_the_very_array():
    def f(x):
        y = np.zeros(3)
        assert np.cumsum(x, out=y) is y
        assert np.add.accumulate(x, out=y) is y
        assert np.divmod(x, 3.0, out=(y, None))[0] is y
        return np.sum(np.cumsum(x, out=y))

    close(gradient(f, X)[0], [3.0, 2.0, 1.0])


def test_out_of_the_wrong_shape_is_refused_in_numpys_words():
    for statement in ("np.sum(A, axis=0, out=o3)", "np.cumsum(A, out=A)", "np.add(A, B, out=o4)"):
        with pytest.raises(ValueError, match=r"shape|dimension|size|broadcast") as caught:
            gradient(program(statement), M, V)
        assert "numpy" in str(type(caught.value)) or isinstance(caught.value, ValueError)


def test_the_other_elements_of_a_masked_write_are_not_computed():
    def f(x):
        y = np.zeros(3)
        np.divide(1.0, x, out=y, where=x != 0.0)
        return np.sum(y)

    # Warnings are errors here; the derivative at zero would be infinite.
    x = np.array([2.0, 0.0, -4.0])
    close(gradient(f, x)[0], [-0.25, 0.0, -0.0625])
    close(hessian(f, x), np.diag([0.25, 0.0, -1 / 32]))


@pytest.mark.parametrize(
    "statement",
    each("""
        np.place(A, mask, flat)
        A[0][[False, True, False, True]] = A[0, ::-2]
        flat[mask.ravel()] = flat[:np.count_nonzero(mask)]
        np.fill_diagonal(A, A[0])
        A.flat[1::2] = flat
        np.stack([A[2], A[0], A[1]], out=A)
        np.concatenate([A[2], A[0], A[1]], out=flat)
    """),
)
def test_what_depends_on_the_order_in_which_numpy_goes_through_memory_is_refused(statement):
    with pytest.raises(MutationError, match="not read yet"):
        gradient(program(statement), M, V)
    with pytest.raises(MutationError, match="copy"):
        hvp(lambda z: program(statement)(*z), [M, V], [M, V])


@pytest.mark.parametrize("mode", ["gradient", "jvp", "hvp"])
@pytest.mark.parametrize(
    "statement",
    each("""
        outside[0] = x[0]
        outside[:2] = x[:2]
        outside[:] = [1.0, x[0], 2.0]
        outside[[0, 1]] = x[:2]
        outside[outside < 9.0] = x
        outside.flat[:] = x
        outside.fill(x[0])
        outside.put([0], x[0])
        outside += x
        outside[1:] *= x[1:]
        outside[[0, 0]] += x[:2]
        np.copyto(outside, x)
        np.put(outside, [0], x[0])
        np.place(outside, [True, False, True], x)
        np.putmask(outside, [True, False, True], x)
        np.put_along_axis(outside, np.array([0]), x[:1], 0)
        np.fill_diagonal(outside.reshape(1, 3), x[0])
        np.add.at(outside, [0, 0], x[:2])
        np.multiply.at(outside, [0, 0], x[:2])
        np.sin(x, out=outside)
        np.add(x, outside, outside)
        np.cumsum(x, out=outside)
        np.add.accumulate(x, out=outside)
        np.concatenate([x[:1], x[1:]], out=outside)
        np.add(x, 1.0, out=outside, where=np.array([True, False, True]))
    """),
)
def test_an_array_made_outside_takes_no_traced_value_and_is_never_half_written(statement, mode):
    outside = np.array([7.0, 8.0, 9.0])
    names = {"np": np, "outside": outside, "kept": [outside]}
    exec(f"def f(x):\n    global outside\n    {statement}\n    return np.sum(outside)", names)
    f = names["f"]
    run = {
        "gradient": lambda: gradient(f, X),
        "jvp": lambda: jvp(f, (X,), (X,)),
        "hvp": lambda: hvp(f, X, X),
    }[mode]
    with pytest.raises((TypeError, ValueError)) as caught:
        run()
    assert outside.tolist() == [7.0, 8.0, 9.0]
    text = str(caught.value) + "".join(getattr(caught.value, "__notes__", [])) + str(caught.value.__cause__)
    assert "derivative" in text
    assert "  1. " in text


def test_an_assignment_into_a_plain_array_says_what_it_is():
    outside = np.zeros(3)

    def f(x):
        outside[:2] = x[1:]
        return np.sum(outside)

    with pytest.raises(MutationError) as caught:
        gradient(f, X)
    assert "a traced array of shape (2,) and dtype float64 would be written into a plain array" in str(caught.value)
    assert "(test_write_functions.py:" in str(caught.value)


# --- += into a plain array -------------------------------------------------------------------------------------------

OUTSIDE = np.array([1.0, -2.0, 0.5])


class _Holder:
    def __init__(self, held: Any) -> None:
        self.held = held


@pytest.mark.parametrize(
    "body",
    [
        "s = OUTSIDE.copy(); s += x * x; s *= x; s[0] = x[1]",
        "s = OUTSIDE * 2.0; s -= x; s /= 2.0 + x; s **= 2",
        "h = Holder(OUTSIDE.copy()); h.held += x; h.held[0] *= x[1]; s = h.held",
        "l = [OUTSIDE + 0.0]; l[0] -= x * x; s = l[0]",
        "s = np.sort(OUTSIDE)\nfor k in range(3):\n    s += x * k",
        "s = np.ones((3, 3)).sum(axis=0); s += x; s[1] = x[0]",
        "s = 2.0 * OUTSIDE[::-1]; t = s[1:].copy(); t += x[1:]; s = np.concatenate([t, x[:1]])",
    ],
)
def test_a_plain_array_that_one_name_alone_holds_becomes_traced_by_an_in_place_operator(body):
    names = {"np": np, "OUTSIDE": OUTSIDE, "Holder": _Holder}
    exec("def f(x):\n" + textwrap.indent(body.replace("; ", "\n"), "    ") + "\n    return np.sum(s * s)", names)

    def f(x):
        # On a complex step NumPy needs room for it.
        names["OUTSIDE"] = OUTSIDE.astype(x.dtype) if isinstance(x, np.ndarray) else OUTSIDE
        return names["f"](x)

    agrees(f, X, analytic=False)


@pytest.mark.parametrize(
    "body",
    [
        "s = OUTSIDE.copy(); t = s; s += x; s = t",
        "s = OUTSIDE.copy(); t = s[:]; s += x; s = t",
        "s = OUTSIDE.copy(); s[1:] += x[1:]",
        "s = OUTSIDE; s += x",
        "s = OUTSIDE.copy(); np.add(s, x, out=s)",
        "def add(a):\n    a += x\ns = OUTSIDE.copy(); add(s)",
        "import operator; s = OUTSIDE.copy(); operator.iadd(s, x)",
    ],
)
def test_a_plain_array_that_somebody_else_holds_does_not(body):
    names = {"np": np, "OUTSIDE": OUTSIDE}
    exec("def f(x):\n" + textwrap.indent(body.replace("; ", "\n"), "    ") + "\n    return np.sum(s * s)", names)
    for run in (lambda: gradient(names["f"], X), lambda: jvp(names["f"], (X,), (X,))):
        with pytest.raises(MutationError, match="plain array"):
            run()
    assert OUTSIDE.tolist() == [1.0, -2.0, 0.5]


def test_an_in_place_operator_that_numpy_refuses_is_refused():
    def shapes(x):
        s = np.zeros(1) * 2.0
        s = np.sort(s)
        s += x
        return np.sum(s)

    def integers(x):
        s = np.zeros(3, int) * 2
        s += x
        return np.sum(s)

    with pytest.raises(ValueError, match="broadcast"):
        gradient(shapes, X)
    with pytest.raises(TypeError):
        gradient(integers, X)


# --- arrays made inside ----------------------------------------------------------------------------------------------

PLAIN = np.array([0.5, 1.0, 2.0])

MADE = each("""
    np.zeros(3, dtype)
    np.ones(3, dtype)
    np.full(3, 0.5, dtype)
    np.full(3, x[0])
    np.eye(3, dtype=dtype)[0]
    np.identity(3, dtype)[1]
    np.arange(3.0, dtype=dtype)
    np.linspace(0.0, 1.0, 3, dtype=dtype)
    np.geomspace(1.0, 4.0, 3, dtype=dtype)
    np.logspace(0.0, 1.0, 3, dtype=dtype)
    np.zeros_like(PLAIN, dtype=dtype)
    np.ones_like(PLAIN, dtype=dtype)
    np.full_like(PLAIN, 2.0, dtype=dtype)
    np.empty_like(PLAIN, dtype=dtype) * 0.0
    np.copy(plain)
    np.array(plain)
    np.array([1.0, 2.0, 3.0], dtype)
    np.array([[x[0], 1.0, x[1]]])[0]
    np.asarray([1.0, 2.0, 3.0], dtype)
    np.tile(plain, 2)[:3]
    np.repeat(plain, 2)[1:4]
    np.concatenate([plain[:1], plain[1:]])
    np.stack([plain, plain])[1]
    np.hstack([plain[:1], plain[1:]])
    np.vstack([plain, plain])[0]
    np.column_stack([plain, plain])[:, 1]
    np.diag(plain)[1] + 0.0
    np.zeros(3, dtype).copy()
    np.zeros(3, dtype).astype(dtype)
    np.zeros((3, 1), dtype).flatten()
    np.zeros((2, 3), dtype).T.copy()[:, 0]
    np.arange(6.0, dtype=dtype).reshape(2, 3)[1]
    2.0 * np.ones(3, dtype)
    -np.ones(3, dtype) + 1.0
    plain * np.ones(3, dtype)
    (np.ones(3, dtype) / 2.0 - plain) ** 2
    np.ones(3, dtype)[[0, 1, 1]]
    np.ones(5, dtype)[[True, False, True, False, True]]
    copy.copy(np.ones(3, dtype))
    copy.deepcopy(np.ones(3, dtype))
""")


@pytest.mark.parametrize("made", MADE)
def test_an_array_made_inside_is_filled_by_elements_blocks_and_masks(made):
    names = {"np": np, "PLAIN": PLAIN, "copy": copy}
    exec(
        "def f(x):\n"
        "    dtype = complex if np.iscomplexobj(x) else float\n"
        "    plain = PLAIN.astype(dtype)\n"
        f"    a = {made}\n"
        "    before, alias, end = np.sum(a) * x[2], a, a[1:]\n"
        "    for i in range(2):\n"
        "        a[i] = x[i] * x[2] + a[i]\n"
        "    between = np.dot(a, x)\n"
        "    end *= x[0]\n"
        "    a[np.array([True, False, True])] += x[1:]\n"
        "    a[[0, 0]] -= x[:2]\n"
        "    return before + between + np.sum(alias * a * end[0]), a\n",
        names,
    )
    agrees(lambda x: names["f"](x)[0], X)
    close(jvp(lambda x: names["f"](x)[1], (X,), (X,))[0], names["f"](X)[1])


def test_a_matrix_is_assembled_and_solved():
    def f(k, b):
        n = len(b)
        a = np.zeros((n, n), k.dtype)
        for e in range(n):
            a[e, e] += k[e]
            if e + 1 < n:
                a[e : e + 2, e : e + 2] += k[e] * np.array([[1.0, -1.0], [-1.0, 1.0]])
        a += 2.0 * np.eye(n)
        u = np.linalg.solve(a, b)
        return np.sum(u * u * np.arange(1.0, n + 1.0))

    agrees(f, np.array([1.0, 2.0, 0.5, 1.5]), np.array([1.0, -1.0, 2.0, 0.3]))


def test_only_floating_arrays_that_are_computed_of_arrays_made_inside_can_be_written_to():
    seen = []

    def f(x):
        a, b = np.eye(3), np.ones(3)
        for y in (np.dot(a, b), a @ b, np.exp(b), np.linalg.solve(a, b), np.sum(a, axis=0), a > 0.5, np.arange(3)):
            seen.append(type(y) is np.ndarray)
        return x

    gradient(f, 1.0)
    # Are they plain?
    assert seen == [False] * 5 + [True] * 2


def test_an_array_that_is_no_copy_of_a_plain_one_is_that_one():
    plain = np.zeros(3)

    def f(x):
        same = np.array(plain, copy=None)
        same[0] = 5.0
        return np.sum(x)

    gradient(f, X)
    assert plain[0] == 5.0


def test_masked_arrays_made_inside_are_constants():
    def f(x):
        a = np.ma.masked_array(np.ones(3), mask=[False, True, False])
        b = np.ma.masked_invalid(np.linspace(0.0, 1.0, 3))
        c = np.ma.array(np.zeros(3), mask=np.zeros(3, bool))
        return np.sum(x * a.filled(0.0)) * a.sum() + np.sum(x) * b.mean() + np.sum(x) * c.sum()

    close(gradient(f, X)[0], np.array([2.0, 0.0, 2.0]) + 0.5)

    def write(x):
        a = np.ma.zeros(3)
        a[0] = x[0]
        return a.sum()

    with pytest.raises((RetrogradeError, ValueError)) as caught:
        gradient(write, X)
    assert "derivative" in str(caught.value) + "".join(getattr(caught.value, "__notes__", []))


# --- as_strided ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    each("""
        tricks.as_strided(A, (3, 2), (32, 16))[...] *= v[0]
        tricks.as_strided(flat, (6,), (16,))[...] = v
        y = tricks.as_strided(A, (5, 3), (8, 8)); A[0, 0] = 3.0 * v[0]; o3 += y.sum(0)
        y = tricks.as_strided(A.T, (2, 3), (8, 32)); y[1, 1] = v[1]; o3 += y[0] * y[1]
        y = tricks.as_strided(A[1:], (2, 2), (32, 8)); A[1] = v[:4]; o3[:2] += y[0]
        y = tricks.as_strided(A); y[0] = v[:4]
        y = tricks.sliding_window_view(A, 2, axis=1); A[0, 0] = 3.0 * v[0]; o3 += y.sum((1, 2))
        y = tricks.as_strided(o4, (2, 2), (16, 8)); o4[1] = v[0]; y[1] *= v[1]
    """),
)
def test_as_strided_is_a_view(statement):
    agrees(program(statement), M, V, analytic=False)


def test_as_strided_of_other_memory_is_refused():
    for shape, strides in (((5,), (8,)), ((2,), (4,)), ((2,), (-8,))):
        with pytest.raises(RetrogradeError, match="memory that is not in x"):
            gradient(lambda x, shape=shape, strides=strides: np.sum(as_strided(x, shape, strides)), X)


def test_an_element_that_stands_in_two_places_is_not_written_through_them():
    with pytest.raises(ValueError, match="read-only"):
        gradient(lambda x: as_strided(x, (2, 2), (8, 8)).fill(0.0), X)


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    each("""
        rng.shuffle(A)
        rng.shuffle(A, axis=1)
        np.random.shuffle(A)
        rng.permuted(A, axis=0, out=A)
        A.resize(2, 2)
        A.shape = (4, 3)
        A.byteswap(True)
        np.isnan.at(A, [0])
    """),
)
def test_what_cannot_be_followed_is_refused_with_the_way_out(statement):
    names = {"np": np, "rng": np.random.default_rng(0)}
    exec(f"def f(A):\n    {statement}\n    return np.sum(A)", names)
    with pytest.raises(RetrogradeError) as caught:
        gradient(names["f"], M)
    assert caught.value.ways


def test_shuffle_of_rows_made_inside_is_refused_and_of_integers_is_numpys():
    def rows(x):
        a = np.zeros((4, 2))
        np.random.default_rng(0).shuffle(a)
        return np.sum(x)

    def order(x):
        places = np.arange(3)
        np.random.default_rng(0).shuffle(places)
        return np.sum(x[places] * PLAIN)

    with pytest.raises(MutationError, match="permutation"):
        gradient(rows, X)
    agrees(order, X)


# --- plain arrays that nodes keep --------------------------------------------------------------------------------


def test_a_large_constant_cannot_be_changed_through_the_array_that_it_is_a_view_of():
    base = np.ones((200, 200))
    for view in (lambda: base.T, lambda: base.reshape(-1, 100), lambda: np.broadcast_to(base, (2, 200, 200))):

        def f(x, view=view):
            y = np.sum(view() * x)
            base[0] = 0.0
            return y

        with pytest.raises(ValueError, match="read-only"):
            gradient(f, np.ones(view().shape))
        assert base.flags.writeable
        assert base[0, 0] == 1.0


def test_a_large_part_of_a_larger_constant_is_copied_so_that_the_rest_may_be_written():
    history = np.ones((2, 100, 100))

    def f(x):
        y = np.sum(history[0] * x)
        history[1] = 3.0
        history[0] = 7.0
        return y

    close(gradient(f, np.ones((100, 100)))[0], np.ones((100, 100)))
    assert history[0, 0, 0] == 7.0


def test_a_failed_function_leaves_its_arguments_and_its_constants_as_they_were():
    constant = np.ones((100, 100))

    def f(x, p):
        x[0] = p[0]
        p *= 2.0
        y = np.sum(constant * x[0])
        np.multiply.at(x, [0, 0], p[:2])
        raise KeyError(y)

    x, p = X.copy(), PLAIN.copy()
    for run in (
        lambda: gradient(f, x, p),
        lambda: pullback(f, x, p),
        lambda: jvp(f, (x, p), (p, x)),
        lambda: hvp(lambda z: f(*z), [x, p], [p, x]),
    ):
        with pytest.raises(KeyError):
            run()
        assert x.tolist() == X.tolist()
        assert p.tolist() == PLAIN.tolist()
        assert constant.flags.writeable


def test_functions_that_write_refuse_a_parameter_and_views_of_it():
    p = param(X)
    for attempt in (
        lambda: np.copyto(p, 0.0),
        lambda: np.put(p, [0], 1.0),
        lambda: np.multiply.at(p, [0], 2.0),
        lambda: np.cumsum(p, out=p),
        lambda: np.cumsum(p[1:], out=p[1:]),
        lambda: p.fill(0.0),
        lambda: p.sort(),
    ):
        with pytest.raises(MutationError):
            attempt()
    close(p.primal, X)


def test_as_strided_of_a_part_reaches_the_whole_array():
    def read(x):
        return np.sum(as_strided(x[2:], (2, 2), (-8, 8)) * np.array([[1.0, 2.0], [3.0, 4.0]]))

    def written(x):
        A = np.outer(x, x)
        v = as_strided(A[1:, 1:], (2, 3), (-32, 8))
        v[0] *= 2
        A[0, 1] = x[2]
        return np.sum(A * np.arange(16.0).reshape(4, 4)) + np.sum(v**2)

    for f in (read, written):
        agree(f, np.array([0.5, -1.2, 2.0, 0.3]))
    with pytest.raises(UnsupportedArgumentError, match="memory that is not in x"):
        gradient(lambda x: np.sum(as_strided(x[2:], (4,), (8,))), np.ones(4))
