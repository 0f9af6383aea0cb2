"""Arrays made inside a function, whose memory others have: they see what is written, or the write is refused."""

import ctypes

import numpy as np
import pytest

import retrograde as rg
from retrograde import MutationError, data, gradient, withgradient

X = np.array([1.0, 2.0, 3.0])


def _csr(d):
    sparse = pytest.importorskip("scipy.sparse")
    return sparse.csr_matrix((d, np.array([0, 1, 2]), np.array([0, 1, 2, 3])), copy=False)


def _spline(d):
    return pytest.importorskip("scipy.interpolate").BSpline(np.arange(6.0), d, 2)


def _tensor(d):
    return pytest.importorskip("torch").as_tensor(d)


TAKERS = {
    "a sparse matrix": (_csr, lambda held: held.sum()),
    "a spline": (_spline, lambda held: float(held(2.5))),
    "a tensor": (_tensor, lambda held: float(held[0])),
    "a memoryview": (lambda d: memoryview(data(d)), lambda held: held[0]),
    "the memory itself": (lambda d: d.data, lambda held: held[0]),
    "an array over it": (lambda d: np.frombuffer(d.data), lambda held: held[0]),
    "a pointer": (lambda d: d.ctypes.data_as(ctypes.POINTER(ctypes.c_double)), lambda held: held[0]),
    "an array by the protocol": (lambda d: np.from_dlpack(d), lambda held: held[0]),
    "the plain array": (data, lambda held: held[0]),
    "a part of the plain array": (lambda d: data(d)[::2], lambda held: held[0]),
    "the plain array of a part": (lambda d: data(d[:2]), lambda held: held[0]),
    "the plain array of a transpose": (lambda d: data(d.reshape(3, 1).T), lambda held: held[0, 0]),
    "what checks it": (np.asarray_chkfinite, lambda held: held[0]),
    "what may make it real": (np.real_if_close, lambda held: held[0]),
    "a masked array": (lambda d: np.ma.array(d, copy=False), lambda held: held[0]),
    "an iterator in C": (np.broadcast, lambda held: next(iter(held))[0]),
    "an iterator over all elements": (lambda d: d.flat, lambda held: next(held)),
    "an iterator over all elements with their places": (np.ndenumerate, lambda held: next(held)[1]),
    "an iterator of NumPy's": (lambda d: np.nditer(d), lambda held: held[0]),
    "a list": (lambda d: [d], lambda held: held[0][0]),
    "a closure": (lambda d: lambda: d, lambda held: held()[0]),
    "a view": (lambda d: d[:2], lambda held: held[0]),
    "a copy": (np.copy, lambda held: held[0]),
}


KNOWN_TO_US = (
    "what may make it real",
    "an iterator over all elements",
    "an iterator over all elements with their places",
    "an iterator of NumPy's",
    "a list",
    "a closure",
    "a view",
    "a copy",
)


@pytest.mark.parametrize("how", TAKERS)
def test_who_has_the_memory_of_an_array_sees_what_is_written_to_it_or_the_write_is_refused(how):
    take, read = TAKERS[how]

    def f(x):
        d = np.ones(3)
        held = take(d)
        d[0] = 7.0 * x[1]
        return np.sum(x) * read(held)

    if how not in KNOWN_TO_US:
        with pytest.raises(MutationError, match=r"memory .* has taken, .*test_memory\.py"):
            gradient(f, X)
        return
    value, (g,) = withgradient(f, X)
    np.testing.assert_allclose(value, f(X))
    np.testing.assert_allclose(g, [(f(X + h) - f(X - h)) / 2e-6 for h in 1e-6 * np.eye(3)], rtol=1e-6)


@pytest.mark.parametrize("change", ["element", "all", "in place"])
@pytest.mark.parametrize("how", TAKERS)
def test_who_has_the_memory_of_an_array_sees_constants_that_are_written_to_it(how, change):
    take, read = TAKERS[how]

    def f(x):
        d = np.ones(3)
        held = take(d)
        if change == "element":
            d[0] = 5.0
        elif change == "all":
            d[...] = [5.0, 6.0, 7.0]
        else:
            d += 4.0
        return np.sum(x) * read(held)

    value, (g,) = withgradient(f, X)
    np.testing.assert_allclose(value, f(X))
    np.testing.assert_allclose(g, f(X) / np.sum(X) * np.ones(3))


@pytest.mark.parametrize("how", TAKERS)
def test_memory_that_was_given_back_is_filled_with_traced_values(how):
    take, read = TAKERS[how]

    def f(x):
        d = np.ones(3)
        seen = read(take(d))
        d[0] = x[0]
        return np.sum(d * x) * (seen / seen)

    np.testing.assert_allclose(gradient(f, X)[0], [2.0, 1.0, 1.0])


def _garbage(d):
    class Holder:
        pass

    holder = Holder()
    holder.itself, holder.array = holder, data(d)


def _kept_error(d):
    def fails(plain):
        parts = [plain[1:], plain]
        raise RuntimeError(str(parts))

    try:
        fails(data(d))
    except RuntimeError as error:
        return error


@pytest.mark.parametrize("take", [_garbage, _kept_error])
def test_memory_that_only_garbage_and_calls_that_failed_hold_is_filled_with_traced_values(take):
    def f(x):
        d = np.ones(3)
        held = take(d)
        d[0] = x[0]
        return np.sum(d * x) * (1.0 if held is None else len(held.args))

    np.testing.assert_allclose(gradient(f, X)[0], [2.0, 1.0, 1.0])


def test_the_variables_of_a_generator_that_can_go_on_hold_memory():
    def later(plain):
        yield
        yield plain[0]

    def f(x):
        d = np.ones(3)
        going = later(data(d))
        next(going)
        d[0] = x[0]
        return next(going) * x[1]

    with pytest.raises(MutationError, match="memory"):
        gradient(f, X)


def test_operations_before_and_after_the_memory_was_given_away_keep_the_values_that_they_used():
    def f(x):
        d = np.ones(3)
        before = x * d
        held = data(d)
        after = x * x * d
        d[:] = 10.0
        return np.sum(before + after) + np.sum(held) * x[0]

    np.testing.assert_allclose(gradient(f, X)[0], 1.0 + 2.0 * X + [30.0, 0.0, 0.0])


def test_a_large_array_whose_plain_form_an_operation_keeps_is_read_only_under_its_own_name_too():
    x = np.ones(10_000)

    def f(x):
        d = np.ones(10_000)
        y = np.sum(x * data(d))
        d[:] = 0.0
        return y

    with pytest.raises((ValueError, MutationError), match=r"read-only|would not reach"):
        gradient(f, x)


def test_a_refused_write_names_what_holds_the_memory_and_leaves_the_array_as_it_was():
    seen = {}

    def f(x):
        d = np.ones(3)
        held = data(d)
        try:
            d[0] = x[0]
        except MutationError as error:
            seen["text"] = str(error)
        seen["d"], seen["held"] = np.array(data(d)), np.array(held)
        return np.sum(x)

    gradient(f, X)
    assert "`held`" in seen["text"]
    assert "1. fill the array first" in seen["text"]
    np.testing.assert_array_equal(seen["d"], np.ones(3))
    np.testing.assert_array_equal(seen["held"], np.ones(3))


def test_the_refusal_stands_in_every_mode_and_in_batches():
    def f(x):
        d = np.ones(3)
        held = data(d)
        d[0] = x[0]
        return np.sum(d) * held[0]

    for transform in (
        lambda: rg.jvp(f, (X,), (X,)),
        lambda: rg.hessian(f, X),
        lambda: rg.vmap(f)(np.ones((2, 3))),
        lambda: rg.taylor(f, X, X, 2),
    ):
        with pytest.raises(MutationError, match="memory"):
            transform()


# --- loops over an array that is written to ----------------------------------------------------------------------


def _by_ndenumerate(y, x):
    for (i, j), v in np.ndenumerate(y):
        y[i, j] = v + x[j] ** 2 * (i + 1)
        if j < 2:
            y[i, j + 1] += x[0] * y[i, j]


def _by_flat(y, x):
    for k, v in enumerate(y.flat):
        y.flat[k] = v + x[k % 3] ** 2
        if k < 5:
            y.flat[k + 1] += x[0] * y.flat[k]


def _by_rows(y, x):
    for row in y:
        row[:] = row + x**2
        y[1] += x[0] * row


def _by_zip(y, x):
    for k, (row, other) in enumerate(zip(y, y[::-1], strict=True)):
        row += x * (k + 1)
        other[0] *= row[1]


def _by_nditer(y, x):
    it = np.nditer(y, flags=["multi_index"])
    for v in it:
        i, j = it.multi_index
        y[i, j] = v * x[j]
        y[(i + 1) % 2, j] += x[i] * y[i, j]


def _by_nditer_with_writes(y, x):
    with np.nditer(y, op_flags=["readwrite"], order="F") as it:
        for k, v in enumerate(it):
            v[...] = v * x[k % 3] + k
            y[1, 2] += v


def _by_nditer_step_by_step(y, x):
    it = np.nditer([y.T, x[:, None]], flags=["c_index"], op_flags=[["readwrite"], ["readonly"]])
    while not it.finished:
        it[0] = it[0] * it[1] + it.index
        it.iternext()


def _by_nditer_with_an_output(y, x):
    with np.nditer([x, np.array([1.0, 2.0])[:, None], None]) as it:
        for a, b, c in it:
            c[...] = a * a * b
        y[...] = it.operands[2]


@pytest.mark.parametrize(
    "fill",
    [
        _by_ndenumerate,
        _by_flat,
        _by_rows,
        _by_zip,
        _by_nditer,
        _by_nditer_with_writes,
        _by_nditer_step_by_step,
        _by_nditer_with_an_output,
    ],
)
@pytest.mark.parametrize("make", [lambda x: np.ones((2, 3)), lambda x: np.outer(x[:2], x), lambda x: np.ones((3, 2)).T])
def test_a_loop_over_an_array_sees_what_is_written_into_it_meanwhile(fill, make):
    def f(x):
        y = make(x)
        fill(y, x)
        return np.sum(y * np.arange(6.0).reshape(2, 3))

    differences = [(f(X + h) - f(X - h)) / 2e-6 for h in 1e-6 * np.eye(3)]
    value, (g,) = withgradient(f, X)
    np.testing.assert_allclose(value, f(X))
    np.testing.assert_allclose(g, differences, rtol=1e-6)
    np.testing.assert_allclose(rg.jvp(f, (X,), (X,))[1], g @ X)
    np.testing.assert_allclose(rg.vmap(f)(np.stack([X, 2 * X])), [f(X), f(2 * X)])
    np.testing.assert_allclose(rg.hessian(f, X), rg.jacobian(lambda x: rg.gradient(f, x)[0], X))


def test_an_iterator_of_numpys_is_one_and_its_readonly_elements_are_so():
    def f(x):
        it = np.nditer([x, np.ones(3)])
        assert isinstance(it, np.nditer)
        assert isinstance(np.nditer(np.arange(3)), np.nditer)
        assert it.ndim == 1
        assert len(it) == 2
        with pytest.raises(ValueError, match="read-only"):
            it[0][...] = 1.0
        return sum(a * a * b for a, b in it)

    np.testing.assert_allclose(gradient(f, X)[0], 2 * X)


@pytest.mark.parametrize(
    "use",
    [
        lambda x: np.nditer(x, flags=["external_loop"]),
        lambda x: np.nditer(x, flags=["buffered"], op_dtypes=["float32"], casting="same_kind"),
        lambda x: np.nditer(x).itviews,
    ],
)
def test_an_iterator_that_gives_parts_of_the_memory_is_refused(use):
    with pytest.raises(MutationError, match=r"np\.nditer.*test_memory\.py"):
        gradient(use, X)


# --- what is computed of arrays made inside ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.exp(np.ones((2, 2))),
        lambda: np.linalg.solve(np.eye(2), np.ones((2, 2))),
        lambda: np.where(np.eye(2) > 0, np.ones((2, 2)), 0.0),
        lambda: np.meshgrid(np.ones(2), np.ones(2))[0],
        lambda: abs(np.eye(2)),
        lambda: np.eye(2) ** 2,
        lambda: np.eye(2) @ np.eye(2),
        lambda: -np.eye(2),
        lambda: np.ones((2, 2)).cumsum(axis=0),
        lambda: np.maximum(np.eye(2), 0.5),
        lambda: np.linalg.eigh(np.eye(2) + 1.0)[1],
        lambda: np.linalg.eig(np.diag([1.0, 2.0])).eigenvectors,
        lambda: np.linalg.qr(np.eye(2) + 1.0).R,
        lambda: np.linalg.svd(np.eye(2) + 1.0)[2],
        lambda: np.unique_inverse(np.array([3.0, 1.0])).values[None],
        lambda: divmod(5.0 * np.ones((2, 2)), 2.0)[1],
        lambda: np.polyfit(np.arange(5.0), np.arange(5.0) ** 2, 2)[None],
        lambda: np.histogram(np.arange(5.0), 3)[1][None],
    ],
)
def test_what_is_computed_of_arrays_made_inside_can_be_filled_with_traced_values(make):
    def f(x):
        d = make()
        d[0, 0] = x[0]
        return np.sum(d * x[1])

    rest = np.sum(make()) - make()[0, 0]
    np.testing.assert_allclose(gradient(f, X)[0], [X[1], X[0] + rest, 0.0])


@pytest.mark.parametrize("inner", ["gradient", "grad", "pullback"])
def test_an_inner_gradient_in_an_array_without_axes_is_one_that_can_be_written_to(inner):
    def f(x):
        def cube(a):
            return a**3

        a = np.array(x[0])
        bar = {
            "gradient": lambda: gradient(cube, a)[0],
            "grad": lambda: rg.grad(cube)(a),
            "pullback": lambda: rg.pullback(cube, a)[1](1.0)[0],
        }[inner]()
        bar[...] = 2.0 * bar + x[1]
        return bar * x[2]

    # 2·3a²·x₂ + x₁x₂
    np.testing.assert_allclose(gradient(f, X)[0], [12.0 * X[0] * X[2], X[2], 6.0 * X[0] ** 2 + X[1]])


class Raises:
    """An object whose every attribute is code that fails."""

    def __getattr__(self, name):
        raise KeyError(name)


def test_who_looks_for_the_holder_of_memory_asks_no_object_for_its_attributes():
    def f(x):
        y = np.zeros(3)
        others = [Raises()]
        held = rg.data(y)
        y[0] = x[0]
        return np.sum(held) * np.sum(y) * len(others)

    def failed():
        """A call that has ended, whose variables are looked through, as its exception is kept."""
        other = Raises()
        return 1 / (0 * (other is None))

    with pytest.raises(ZeroDivisionError) as kept:
        failed()
    with pytest.raises(MutationError, match="`held`"):
        gradient(f, X)
    assert kept.value is not None
