"""Keywords that are calls of another form: variances about a given mean, weighted quantiles, dtype= and the like."""

import warnings

import numpy as np
import pytest

from retrograde import gradient, hessian, jacobian, jvp, pullback, vmap
from retrograde.errors import UnsupportedArgumentError

RNG = np.random.default_rng(7)
A = RNG.uniform(-1, 1, (3, 4))
M = RNG.uniform(-1, 1, (3, 1))
MASK = np.arange(12).reshape(3, 4) % 5 != 1


def slope(f, x, h=1e-6):
    """The Jacobian by central differences."""
    x = np.asarray(x)
    columns = []
    for i in range(x.size):
        d = np.zeros(x.size)
        d[i] = h
        d = d.reshape(x.shape)
        columns.append((f(x + d) - f(x - d)) / (2 * h))
    return np.stack(columns, axis=-1).reshape((*np.shape(columns[0]), *x.shape))


ABOUT = [
    (np.var, {"axis": 1}),
    (np.var, {"axis": 1, "ddof": 1, "keepdims": True}),
    (np.var, {"axis": 1, "where": MASK}),
    (np.var, {"axis": 1, "correction": 1}),
    (np.std, {"axis": 1}),
    (np.std, {"axis": 1, "ddof": 0.5, "where": MASK, "keepdims": True}),
    (np.nanvar, {"axis": 1}),
    (np.nanstd, {"axis": 1, "where": MASK}),
]


@pytest.mark.parametrize(("function", "given"), ABOUT)
def test_a_variance_about_a_mean_depends_on_both(function, given):
    assert np.allclose(
        jacobian(lambda a: function(a, mean=M, **given), A), slope(lambda a: function(a, mean=M, **given), A)
    )
    # np.nanvar of a plain array does not look at its mean.
    m_bar = jacobian(lambda m: function(A + 0 * m, mean=m, **given), M)
    assert np.allclose(m_bar, slope(lambda m: function(A, mean=m, **given), M))
    _, y_dot = jvp(lambda a, m: function(a, mean=m, **given), (A, M), (A * 0 + 1, M * 0 + 1))
    assert np.allclose(y_dot, 0)  # elements and mean move together


@pytest.mark.parametrize("function", [np.var, np.std])
def test_a_mean_of_the_elements_drops_out_to_second_order(function):
    def given(a):
        return np.sum(function(a, axis=1, mean=np.mean(a, axis=1, keepdims=True)) ** 2)

    def alone(a):
        return np.sum(function(a, axis=1) ** 2)

    assert np.allclose(gradient(given, A)[0], gradient(alone, A)[0])
    assert np.allclose(hessian(given, A), hessian(alone, A))


def test_elements_equal_to_their_mean_have_no_slope():
    assert np.all(gradient(lambda a: np.std(a, mean=0.5), np.full(4, 0.5))[0] == 0)
    assert np.all(gradient(lambda m: np.std(np.full(4, 0.5), mean=m), np.array(0.5))[0] == 0)


def test_nan_is_skipped_about_a_mean():
    a = A.copy()
    a[1, 2] = np.nan
    (a_bar,) = gradient(lambda a: np.sum(np.nanvar(a, axis=1, mean=M)), a)
    n = np.sum(~np.isnan(a), axis=1, keepdims=True)
    assert np.allclose(a_bar, np.where(np.isnan(a), 0.0, 2 * (a - M) / n))


def test_variances_about_a_mean_are_batched():
    means = RNG.uniform(-1, 1, 5)
    rows = RNG.uniform(-1, 1, (5, 4))
    found = vmap(lambda a, m: np.std(a, mean=m))(rows, means)
    assert np.allclose(found, [np.std(a, mean=m) for a, m in zip(rows, means, strict=True)])
    assert np.allclose(vmap(lambda a: np.var(a, mean=0.25))(rows), np.var(rows, axis=1, mean=0.25))


def test_too_little_freedom_warns_as_numpy():
    with pytest.warns(RuntimeWarning, match="Degrees of freedom"), np.errstate(all="ignore"):
        y, _ = jvp(lambda a: np.var(a, mean=0.0, ddof=4), (np.ones(4),), (np.ones(4),))
    assert np.isinf(y)
    with pytest.raises(ValueError, match="simultaneously"):
        gradient(lambda a: np.var(a, mean=0.0, ddof=1, correction=1), np.ones(4))


# --- weighted quantiles ----------------------------------------------------------------------------------------------

W = RNG.uniform(0.5, 2, (3, 4))
QUANTILES = [
    (W, {}),
    (W, {"axis": 0}),
    (W, {"axis": 1, "keepdims": True}),
    (np.where(MASK, W, 0.0), {"axis": (1, 0)}),
]


@pytest.mark.parametrize("function", [np.quantile, np.nanquantile, np.percentile, np.nanpercentile])
@pytest.mark.parametrize(("w", "given"), QUANTILES)
@pytest.mark.parametrize("q", [0.3, 0.0, 1.0, [0.1, 0.5, 0.97]])
def test_a_weighted_quantile_is_one_of_the_elements(function, w, given, q):
    q = np.multiply(q, 100 if "percentile" in function.__name__ else 1)

    def f(a):
        return function(a, q, weights=w, method="inverted_cdf", **given)

    a_dot = RNG.uniform(-1, 1, A.shape)
    y, y_dot = jvp(f, (A,), (a_dot,))
    assert np.array_equal(y, f(A))
    h = 1e-6
    assert np.allclose(y_dot, (f(A + h * a_dot) - f(A - h * a_dot)) / (2 * h))
    assert np.allclose(jacobian(f, A), slope(f, A))


def test_of_a_weighted_quantile_nothing_comes_back_to_the_weights():
    def f(a, w):
        return np.sum(np.quantile(a, 0.4, axis=1, weights=w, method="inverted_cdf") ** 2)

    a_bar, w_bar = gradient(f, A, W)
    assert w_bar is None or np.all(w_bar == 0)
    assert np.allclose(a_bar, gradient(lambda a: f(a, W), A)[0])
    assert np.allclose(hessian(lambda a: f(a, W), A).reshape(12, 12), np.diag(2.0 * (a_bar != 0).ravel()))


@pytest.mark.parametrize("skips", [False, True])
def test_nan_among_weighted_elements(skips):
    function = np.nanquantile if skips else np.quantile
    a, w = A.copy(), W.copy()
    a[0, 1] = np.nan
    a[2] = np.nan

    def f(a):
        return function(a, [0.2, 0.9], axis=1, weights=w, method="inverted_cdf")

    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y, y_dot = jvp(f, (a,), (np.ones(a.shape),))
        assert np.array_equal(y, f(a), equal_nan=True)
    assert np.all(y_dot == 1)
    (a_bar,) = gradient(lambda a: np.nansum(f(a)), a)
    assert np.sum(a_bar) == np.sum(~np.isnan(y))


@pytest.mark.parametrize("function", [np.quantile, np.percentile])
@pytest.mark.parametrize(("w", "axis"), [(W[0], 1), (W[:, 0], 0)])
def test_weights_may_be_those_of_the_axis(function, w, axis):
    def f(a):
        return function(a, 0.4, axis=axis, weights=w, method="inverted_cdf", keepdims=True)

    assert np.array_equal(jvp(f, (A,), (A,))[0], f(A))
    assert np.allclose(jacobian(f, A), slope(f, A))


def test_weighted_quantiles_are_batched():
    with np.errstate(all="raise"):
        found = vmap(lambda a, w: np.quantile(a, [0.2, 0.7], weights=w, method="inverted_cdf"))(A, W)
    assert np.array_equal(found, np.quantile(A, [0.2, 0.7], axis=1, weights=W, method="inverted_cdf").T)
    same = vmap(lambda a: np.quantile(a, 0.4, axis=0, weights=W, method="inverted_cdf"))(np.stack([A, -A]))
    assert np.array_equal(same, [np.quantile(a, 0.4, axis=0, weights=W, method="inverted_cdf") for a in (A, -A)])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"weights": W}, "inverted_cdf"),
        ({"weights": -W, "method": "inverted_cdf"}, "non-negative"),
        ({"weights": W * 0, "method": "inverted_cdf"}, "all zero"),
        ({"weights": W[0], "method": "inverted_cdf"}, "[Aa]xis"),
        ({"weights": W[:, 0], "method": "inverted_cdf", "axis": 1}, "[Ss]hape"),
    ],
)
def test_what_numpy_refuses_of_weights_is_refused(given, words):
    for call in (lambda a: np.quantile(a, 0.5, **given), lambda a: gradient(lambda a: np.sum(call_of(a, given)), a)):
        with pytest.raises((ValueError, TypeError), match=words), np.errstate(all="ignore"):
            call(A)


def call_of(a, given):
    return np.quantile(a, 0.5, **given)


# --- dtype=, casting=, and what changes nothing -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.maximum.reduce(x, dtype=np.float32),
        lambda x: np.logaddexp.accumulate(x, axis=1, dtype=np.float32),
        lambda x: np.concatenate([x, x * x], axis=1, dtype=np.float32),
        lambda x: np.stack([x, np.ones((3, 4), int)], dtype=np.float32),
        lambda x: np.trace(x, dtype=np.float32),
        lambda x: np.linspace(x[0, 0], x[1, 1], 5, dtype=np.float32),
        lambda x: np.add.reduceat(x, [0, 2], axis=1, dtype=np.float32),
        lambda x: np.cov(x, dtype=np.float32),
    ],
)
def test_a_dtype_is_that_of_the_result_and_every_cotangent_its_own(f):
    y, y_dot = jvp(f, (A,), (np.ones(A.shape),))
    assert np.asarray(y).dtype == np.asarray(f(A)).dtype == np.float32
    assert np.allclose(y, f(A), rtol=1e-6, atol=1e-6)
    assert y_dot.dtype == np.float32
    (a_bar,) = gradient(lambda x: np.sum(f(x)), A)
    assert a_bar.dtype == A.dtype
    assert np.isclose(np.sum(a_bar), np.sum(y_dot), atol=1e-5)


def test_casting_is_checked_as_numpy_does():
    assert gradient(lambda x: np.sum(np.concatenate([x, x], dtype=np.float32, casting="unsafe")), np.ones(2))[0][0] == 2
    with pytest.raises(TypeError, match="cast"):
        gradient(lambda x: np.sum(np.concatenate([x, x], dtype=np.float32, casting="safe")), np.ones(2))


def test_permission_to_overwrite_the_input_is_not_made_use_of():
    x = RNG.uniform(-1, 1, 7)
    before = x.copy()

    def f(x):
        y = np.median(x, overwrite_input=True)
        return y * np.sum(x * np.arange(7.0))

    (x_bar,) = gradient(f, x)
    assert np.array_equal(x, before)
    assert np.allclose(x_bar, slope(lambda x: np.median(x) * np.sum(x * np.arange(7.0)), x))


def test_windows_that_are_to_be_written_to_are_refused_by_name():
    windows = np.lib.stride_tricks.sliding_window_view
    assert gradient(lambda x: np.sum(windows(x, 2, writeable=False, subok=True)), np.ones(3))[0].tolist() == [1, 2, 1]
    with pytest.raises(UnsupportedArgumentError, match="writeable"):
        gradient(lambda x: np.sum(windows(x, 2, writeable=True)), np.ones(3))


def test_vecdot_keeps_its_axis():
    found = jacobian(lambda x: np.vecdot(x, W, axis=0, keepdims=True), A)
    assert found.shape == (1, 4, 3, 4)
    assert np.allclose(found, slope(lambda x: np.vecdot(x, W, axis=0, keepdims=True), A))


COLUMNS_FIRST = np.asfortranarray(np.arange(1.0, 7.0).reshape(2, 3) + 0.25)
ROWS_FIRST = np.arange(2.0, 8.0).reshape(2, 3) + 0.25


@pytest.mark.parametrize("order", ["C", "F", "A", "K"])
@pytest.mark.parametrize("x", [COLUMNS_FIRST, ROWS_FIRST], ids=["columns", "rows"])
@pytest.mark.parametrize(
    "f",
    [
        lambda x, order: np.exp(x, order=order),
        lambda x, order: np.multiply(x, ROWS_FIRST, order=order),
        lambda x, order: np.modf(x, order=order)[0],
        lambda x, order: np.matmul(x, x.T, order=order),
    ],
    ids=["exp", "multiply", "modf", "matmul"],
)
def test_order_of_a_ufunc_is_the_layout_of_its_result(f, x, order):
    want = f(x, order)
    for y in (
        pullback(lambda x: f(x, order), x)[0],
        jvp(lambda x: f(x, order), (x,), (np.ones(x.shape),))[0],
        vmap(lambda x: f(x, order))(np.stack([x, x]))[0],
    ):
        assert np.array_equal(y, want)
        assert y.flags.c_contiguous == want.flags.c_contiguous
        assert y.flags.f_contiguous == want.flags.f_contiguous
    weights = np.arange(want.size).reshape(want.shape)
    (x_bar,) = gradient(lambda x: np.sum(f(x, order) * weights), x)
    assert np.allclose(x_bar, slope(lambda x: np.sum(f(x, order) * weights), x))


def test_order_decides_what_is_a_view_to_write_into():
    def f(x):
        y = np.exp(x, order="C")
        y.ravel()[0] = 5.0  # a view of `y`, which it would not be in the order of `x`
        return np.sum(y * ROWS_FIRST)

    (x_bar,) = gradient(f, COLUMNS_FIRST)
    assert np.allclose(x_bar, slope(f, COLUMNS_FIRST))
    assert x_bar[0, 0] == 0


@pytest.mark.parametrize(
    ("f", "in_doubles"),
    [
        (lambda x: np.add(x, 2.0, casting="safe"), lambda x: x + 2),
        (lambda x: np.add(x, 2, casting="no"), lambda x: x + 2),
        (lambda x: np.multiply(x, np.arange(3), casting="unsafe"), lambda x: x * np.arange(3)),
        (lambda x: np.exp(x, dtype=np.float32, casting="unsafe"), np.exp),
        (lambda x: np.multiply(x, x, signature="dd->d"), lambda x: x * x),
        (lambda x: np.multiply(x, x, signature="ff->f"), lambda x: x * x),
        (lambda x: np.multiply(x, 3.0, signature=(None, None, np.float32), order="C"), lambda x: x * 3),
        (lambda x: np.divide(x, 3.0, sig=(np.float64,) * 3), lambda x: x / 3),
        (lambda x: np.matmul(x, x.T, signature="ff->f"), lambda x: x @ x.T),
        (
            lambda x: np.where(np.less(x, 3.5, casting="unsafe", signature="ff->?"), x, 2 * x),
            lambda x: np.where(x < 3.5, x, 2 * x),
        ),
    ],
)
def test_casting_and_signature_choose_the_loop_as_in_numpy(f, in_doubles):
    x, want = ROWS_FIRST, f(ROWS_FIRST)
    direction = np.cos(np.arange(6.0)).reshape(2, 3)
    for y in (pullback(f, x)[0], jvp(f, (x,), (direction,))[0], vmap(f)(np.stack([x, x]))[1]):
        assert y.dtype == want.dtype
        assert np.array_equal(y, want)
    slopes = slope(lambda x: np.sum(in_doubles(x)), x)
    (x_bar,) = gradient(lambda x: np.sum(f(x)), x)
    assert x_bar.dtype == np.float64
    assert np.allclose(x_bar, slopes, rtol=1e-6)
    y_dot = jvp(f, (x,), (direction,))[1]
    assert y_dot.dtype == want.dtype
    assert np.allclose(np.sum(y_dot), np.sum(slopes * direction), rtol=1e-6)


@pytest.mark.parametrize(
    ("f", "words"),
    [
        (lambda x: np.exp(x, dtype=np.float32, casting="safe"), "Cannot cast"),
        (lambda x: np.add(x, np.arange(3), casting="no"), "Cannot cast"),
        (lambda x: np.add(x, x, signature="ll->l"), "Cannot cast"),
        (lambda x: np.add(x, x, signature="no->such"), "signature|type"),
        (lambda x: np.add(x, x, signature="dd->d", dtype=float), "both"),
        (lambda x: np.add(x, 1, casting="equiv"), "equiv"),
        (lambda x: np.add(x, x, signature="ll->l", casting="unsafe"), "lose the derivative"),
    ],
)
def test_loops_that_numpy_refuses_or_that_make_integers_raise(f, words):
    with pytest.raises((TypeError, ValueError), match=words):
        gradient(lambda x: np.sum(f(x)), ROWS_FIRST)


def test_qr_knows_the_old_name_of_its_usual_mode():
    def f(x, mode):
        q, r = np.linalg.qr(x, mode)
        return np.sum(q * W[:, :3]) + np.sum(r)

    square = A[:, :3] + 2 * np.eye(3)
    with pytest.warns(DeprecationWarning, match="full"):
        (x_bar,) = gradient(lambda x: f(x, "full"), square)
    assert np.allclose(x_bar, slope(lambda x: f(x, "reduced"), square))
