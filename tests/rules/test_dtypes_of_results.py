"""Results have NumPy's dtypes and types in every precision, and cotangents those of their primals."""

import numpy as np
import pytest

from retrograde import gradient, jvp, linearize, pullback, taylor

X = np.array([0.6, -1.3, 2.5])
PRECISIONS = [np.float16, np.float32, np.float64, np.longdouble]

FUNCTIONS = {
    "append": lambda x: np.append(x, 1.5),
    "append, complex": lambda x: np.append(x * 1j, 1.5),
    "select": lambda x: np.select([x > 1, x > 0], [x, 2.0]),
    "select, arrays": lambda x: np.select([x > 1], [x], np.ones(3)),
    "gradient": lambda x: np.gradient(x, np.array([0.0, 1.0, 3.0]), edge_order=2),
    "gradient, spacing": lambda x: np.gradient(x, 0.5),
    "histogram": lambda x: np.histogram([0.1, 0.2, 0.9], 2, (0, 1), weights=x)[0],
    "histogram, edges": lambda x: np.histogram(x, 4)[1],
    "histogram, edges of a range": lambda x: np.histogram_bin_edges(x, 2, (-1.0, 3.0)),
    "histogramdd": lambda x: np.histogramdd(x[:, None], 2, [(-2.0, 3.0)], weights=x)[1][0],
    "interp": lambda x: np.interp(x[0], [0.0, 1.0], [1.0, 3.0]),
    "emath.sqrt": lambda x: np.emath.sqrt(x),
    "emath.log": lambda x: np.emath.log(x[1]),
    "emath.arcsin": lambda x: np.emath.arcsin(x),
    "emath.power": lambda x: np.emath.power(x, 0.5),
    "matrix_power": lambda x: np.linalg.matrix_power(x[:1, None], 0),
    "multi_dot": lambda x: np.linalg.multi_dot([x, x[:, None] * x, x]),
    "modf": lambda x: np.modf(x[0])[0],
    "poly": lambda x: np.poly(x),
    "polyval": lambda x: np.polyval([x[0], 2.0], x),
    "sort_complex": lambda x: np.sort_complex(x),
    "cov": lambda x: np.cov(x, x[::-1]),
    "cov, weighted": lambda x: np.cov(x, aweights=np.abs(x)),
    "corrcoef": lambda x: np.corrcoef(x, x[::-1]),
    "var about a mean": lambda x: np.var(x, mean=x[:1]),
    "std about a mean": lambda x: np.std(x, mean=x[:1], keepdims=True),
    "weighted quantile": lambda x: np.quantile(x, 0.3, weights=np.ones(3), method="inverted_cdf"),
    "maximum.reduce": lambda x: np.maximum.reduce(x, dtype=np.float64),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", PRECISIONS)
def test_dtypes_and_types_are_numpys(name, dtype):
    f, x = FUNCTIONS[name], X.astype(dtype)
    try:
        want = f(x)
    except TypeError:
        pytest.skip("NumPy itself does not take this precision")
    y, y_dot = jvp(f, (x,), (np.ones(3, dtype),))
    assert type(y) is type(want)
    assert y.dtype == want.dtype == y_dot.dtype
    tolerance = max(8 * float(np.finfo(want.dtype).eps), 1e-15)  # constants of NumPy's code are doubles
    assert np.allclose(y, want, rtol=tolerance, atol=tolerance)
    (x_bar,) = gradient(lambda x: np.sum(np.abs(f(x)) ** 2), x)
    assert x_bar is None or x_bar.dtype == dtype


@pytest.mark.parametrize(
    "f", [lambda x: np.full_like(x, 1.5), lambda x: np.zeros(2), lambda x: np.zeros(3)[:2], lambda x: [np.ones(2), x]]
)
def test_an_array_that_depends_on_nothing_is_a_plain_one(f):
    def plain(y):
        return all(type(part) is np.ndarray for part in (y if isinstance(y, list) else [y]))

    assert plain(jvp(f, (X,), (X,))[0])
    assert plain(pullback(f, X)[0])
    assert plain(linearize(f, X)[0])
    assert plain(taylor(f, X, X, 2)[0])
