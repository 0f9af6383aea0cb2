"""What NumPy makes a view of shares its memory in every mode, and what it copies does not."""

import numpy as np
import pytest
from numpy.lib import stride_tricks as st

import retrograde as rg

X = np.array([[1.0, 2.5, -1.0], [0.5, 3.0, 2.0], [-2.0, 1.0, 4.0]])

FUNCTIONS = {
    "conj()": lambda x: x.conj(),
    "conjugate()": lambda x: x.conjugate(),
    "np.conj": np.conj,
    "real": lambda x: x.real,
    "np.real": np.real,
    "squeeze": lambda x: x[None].squeeze(),
    "np.squeeze": lambda x: np.squeeze(x[..., None]),
    "astype cF": lambda x: x.astype(float, copy=False),
    "astype": lambda x: x.astype(float),
    "np.astype": lambda x: np.astype(x, np.float64, copy=False),
    "view": lambda x: x.view(),
    "ravel": lambda x: x.ravel(),
    "np.ravel": np.ravel,
    "ravelF": lambda x: x.ravel(order="F"),
    "flatten": lambda x: x.flatten(),
    "reshape": lambda x: x.reshape(9),
    "reshapeF": lambda x: np.reshape(x, (9,), order="F"),
    "T.reshape": lambda x: x.T.reshape(9),
    "ascontig": lambda x: np.ascontiguousarray(x),
    "atleast_1d": np.atleast_1d,
    "atleast_2d": np.atleast_2d,
    "atleast_3d": np.atleast_3d,
    "array": lambda x: np.array(x),
    "array cN": lambda x: np.array(x, copy=None),
    "array cF": lambda x: np.array(x, copy=False),
    "require": lambda x: np.require(x),
    "copy": np.copy,
    "nan_to_num": np.nan_to_num,
    "nan_to_numF": lambda x: np.nan_to_num(x, copy=False),
    "diagonal": lambda x: x.diagonal(),
    "diag": np.diag,
    "split": lambda x: np.split(x, 3)[0],
    "array_split": lambda x: np.array_split(x, 2)[0],
    "hsplit": lambda x: np.hsplit(x, 3)[0],
    "vsplit": lambda x: np.vsplit(x, 3)[0],
    "rollaxis": lambda x: np.rollaxis(x, 1),
    "moveaxis": lambda x: np.moveaxis(x, 0, 1),
    "flip": np.flip,
    "fliplr": np.fliplr,
    "flipud": np.flipud,
    "rot90": np.rot90,
    "rot90 2": lambda x: np.rot90(x, 2),
    "rot90 0": lambda x: np.rot90(x, 0),
    "rot90 4": lambda x: np.rot90(x, 4),
    "expand": lambda x: np.expand_dims(x, 0),
    "swap": lambda x: x.swapaxes(0, 1),
    "swap00": lambda x: x.swapaxes(0, 0),
    "transpose": np.transpose,
    "mT": lambda x: x.mT,
    "permute": lambda x: np.permute_dims(x, (1, 0)),
    "mtrans": np.matrix_transpose,
    "lmtrans": np.linalg.matrix_transpose,
    "ldiag": np.linalg.diagonal,
    "einsum ii": lambda x: np.einsum("ii->i", x),
    "einsum ij->ji": lambda x: np.einsum("ij->ji", x),
    "einsum ij": lambda x: np.einsum("ij", x),
    "einsum ...": lambda x: np.einsum("...", x),
    "trim": lambda x: np.trim_zeros(x[0]),
    "bcast": lambda x: np.broadcast_to(x, (2, 3, 3)),
    "meshgrid": lambda x: np.meshgrid(x[0], x[1])[0],
    "sliding": lambda x: st.sliding_window_view(x, (2, 2)),
    "as_strided": lambda x: st.as_strided(x, (3,), (24,)),
    "x[...]": lambda x: x[...],
    "x[()]": lambda x: x[()],
    "x[:]": lambda x: x[:],
    "x[::-1]": lambda x: x[::-1],
    "take": lambda x: x.take([0], 0),
    "fancy": lambda x: x[[0]],
    "mask": lambda x: x[np.ones(3, bool)],
    "ix": lambda x: x[np.ix_([0], [0])],
    "compress": lambda x: x.compress([True, False, False], 0),
    "plus": lambda x: +x,
    "np.positive": np.positive,
    "flat": lambda x: x.flat[0:2],
    "resize": lambda x: np.resize(x, (3, 3)),
    "repeat1": lambda x: np.repeat(x, 1, 0),
    "tile1": lambda x: np.tile(x, 1),
    "concat1": lambda x: np.concatenate([x]),
    "stack": lambda x: np.stack([x])[0],
    "block": lambda x: np.block([[x]]),
    "vstack1": lambda x: np.vstack([x]),
    "delete none": lambda x: np.delete(x, [], 0),
    "roll0": lambda x: np.roll(x, 0),
    "pad0": lambda x: np.pad(x, 0),
    "clip": lambda x: np.clip(x, -9, 9),
    "round": lambda x: np.round(x, 3),
    "where1": lambda x: np.where(True, x, x),
    "choose": lambda x: np.choose(0, [x]),
    "select": lambda x: np.select([True], [x]),
    "sort": lambda x: np.sort(x),
    "tril": np.tril,
    "cumsum": lambda x: x.cumsum(0),
    "sum ax()": lambda x: x.sum(axis=()),
    "sum keep": lambda x: x[:1].sum(0),
    "max ax()": lambda x: np.max(x, axis=()),
    "mean ax()": lambda x: np.mean(x, axis=()),
    "nansum": lambda x: np.nansum(x, axis=()),
    "mpow1": lambda x: np.linalg.matrix_power(x, 1),
    "multi_dot": lambda x: np.linalg.multi_dot([x, np.eye(3)]),
    "item": lambda x: x[0, 0:1],
    "apply_over": lambda x: np.apply_over_axes(np.sum, x, []),
    "unwrap": lambda x: np.unwrap(x[:, :1]),
    "polytrim": lambda x: np.polynomial.polynomial.polytrim(x[0]),
    "trimseq": lambda x: np.polynomial.polyutils.trimseq(x[0]),
    "as_series": lambda x: np.polynomial.polyutils.as_series([x[0]], trim=False)[0],
    "trimcoef": lambda x: np.polynomial.polyutils.trimcoef(x[0]),
    "Poly.coef": lambda x: np.polynomial.Polynomial(x[0]).coef,
    "poly1d": lambda x: np.poly1d(x[0]).coeffs,
    "polyder0": lambda x: np.polyder(x[0], 0),
    "polyint0": lambda x: np.polyint(x[0], 0),
    "pder0": lambda x: np.polynomial.polynomial.polyder(x[0], 0),
    "pint0": lambda x: np.polynomial.polynomial.polyint(x[0], 0),
    "diff0": lambda x: np.diff(x, 0),
    "cov": lambda x: np.ediff1d(x[0]),
    "iterable": lambda x: next(iter(x)),
    "setimag": lambda x: x.imag,
    "np.imag": np.imag,
    "partition": lambda x: np.partition(x, 1),
    "interp": lambda x: np.fix(x),
    "linspace1": lambda x: np.linspace(x[0], x[1], 2),
    "emath": lambda x: np.emath.sqrt(x + 10),
    "argsort": lambda x: np.take_along_axis(x, np.argsort(x), -1),
    "extract": lambda x: np.extract(np.ones(9, bool), x),
    "vander": lambda x: np.vander(x[0], 2),
    "kron": lambda x: np.kron(1, x),
    "outer": lambda x: np.outer(1, x),
    "norm": lambda x: np.linalg.norm(x, axis=0),
    "union": lambda x: np.atleast_1d(x, x)[0],
    "append": lambda x: np.append(x, np.zeros((0, 3)), 0),
}


def written_into_the_array(f, x):
    y = f(x)
    x[0, 0] = x[1, 1] * 5
    x[2, 1] = 7.0
    return weighed(y) + np.sum(x**2)


def written_into_the_result(f, x):
    y = f(x)
    if not y.flags.writeable:
        return weighed(y)
    y[..., 0] = x[1, 1] * 3
    return weighed(x) + np.sum(y**2)


def weighed(y):
    return np.sum(y * np.reshape(1 + np.arange(np.size(y), dtype=float), np.shape(y)))


@pytest.mark.parametrize("writes", [written_into_the_array, written_into_the_result])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_share_memory_where_numpys_do(name, writes):
    for is_transposed in (False, True):

        def f(x, is_transposed=is_transposed):
            x = x * 1.0
            return writes(FUNCTIONS[name], x.T if is_transposed else x)

        expected = f(X)
        np.testing.assert_allclose(rg.jvp(f, (X,), (np.cos(X),))[0], expected)
        np.testing.assert_allclose(rg.withgradient(f, X)[0], expected)
        try:
            batch = rg.vmap(f)(np.stack([X, X]))
        except rg.BatchError:
            continue  # the shape of the result depends on the values
        np.testing.assert_allclose(batch, [expected, expected])


def test_the_method_conj_of_real_numbers_gives_the_array_itself():
    def f(x):
        x = x * 1.0
        y, z = x.conj(), x.conjugate()
        x[0] = 5.0 * x[1]
        return np.sum(y * z)

    np.testing.assert_allclose(rg.gradient(f, np.array([1.0, 2.0, 3.0]))[0], [0.0, 104.0, 6.0])


def test_what_an_example_of_a_batch_lacks_is_said():
    with pytest.raises(rg.MissingAttributeError, match="getfield"):
        rg.vmap(lambda x: x.getfield(np.float64))(np.ones((2, 3)))
