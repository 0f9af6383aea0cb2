"""The attributes and methods that a traced value shares with ndarray, and what it shows of itself."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from truth import close, differences

from retrograde import data, gradient, istracked, jvp, param, vmap

X = np.array([[0.5, -1.0, 2.0], [3.0, 0.25, -0.75]])


def test_attributes_are_those_of_the_array():
    def f(x, v, n):
        assert (x.shape, x.ndim, x.size, x.dtype) == ((2, 3), 2, 6, np.float64)
        assert (x.itemsize, x.nbytes) == (8, 48)
        assert (v.shape, v.ndim, v.size, v.dtype) == ((), 0, 1, np.float64)
        assert (n.shape, n.ndim, n.size) == ((), 0, 1)
        assert n.dtype == np.int64
        assert (np.shape(x), np.ndim(x), np.size(x), np.size(x, 1), len(x)) == ((2, 3), 2, 6, 3, 2)
        assert x.T.shape == (3, 2)
        assert not np.iscomplexobj(x)
        assert np.isrealobj(x)
        assert np.result_type(x, np.float32) == np.float64
        assert np.isscalar(2.0)
        return v * 1.0

    gradient(f, X, 2.0, 3)
    jvp(f, (X, 2.0, 3), (X, 1.0, 1.0))


METHODS = {
    "T": lambda x: x.T,
    "mT": lambda x: x.mT if hasattr(x, "mT") else np.matrix_transpose(x),
    "real": lambda x: x.real,
    "imag": lambda x: x.imag + x,
    "flat": lambda x: x.flat[4] * x,
    "reshape": lambda x: x.reshape(3, 2),
    "reshape of a tuple": lambda x: x.reshape((3, -1)),
    "reshape in Fortran order": lambda x: x.reshape(3, 2, order="F"),
    "ravel": lambda x: x.ravel(),
    "ravel in Fortran order": lambda x: x.ravel("F"),
    "flatten": lambda x: x.flatten(),
    "flatten in Fortran order": lambda x: x.flatten("F"),
    "transpose": lambda x: x.transpose(),
    "transpose by axes": lambda x: x.transpose(1, 0),
    "transpose by a tuple": lambda x: x.transpose((1, 0)),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "squeeze": lambda x: x[None].squeeze(0),
    "repeat": lambda x: x.repeat(2, axis=1),
    "take": lambda x: x.take([0, 2, 2], axis=1),
    "diagonal": lambda x: x.diagonal(),
    "trace": lambda x: x.trace(),
    "compress": lambda x: x.compress([True, False, True], axis=1),
    "sum": lambda x: x.sum(),
    "sum over an axis": lambda x: x.sum(axis=0),
    "sum over a positional axis": lambda x: x.sum(1),
    "sum with keepdims": lambda x: x.sum(axis=-1, keepdims=True),
    "sum where": lambda x: x.sum(where=X > 0),
    "mean": lambda x: x.mean(axis=0),
    "prod": lambda x: x.prod(axis=1),
    "var": lambda x: x.var(axis=0, ddof=1),
    "std": lambda x: x.std(),
    "max": lambda x: x.max(axis=1),
    "min": lambda x: x.min(),
    "ptp": lambda x: np.ptp(x, axis=0),
    "cumsum": lambda x: x.cumsum(axis=1),
    "cumprod": lambda x: x.cumprod(axis=0),
    "clip": lambda x: x.clip(-0.8, 1.5),
    "clip to one side": lambda x: x.clip(min=0.3),
    "dot": lambda x: x.dot(np.arange(3.0)),
    "round": lambda x: (x + 0.07).round(1) * x,
    "conj": lambda x: x.conj() * x.conjugate(),
    "astype": lambda x: x.astype(float) * 2,
    "astype to complex": lambda x: x.astype(complex).real,
    "copy": lambda x: x.copy() * x,
    "item": lambda x: x.item(4) * x.item((0, 2)) * x.item(1, 1),
    "tolist": lambda x: x.tolist()[0][1] * x.tolist()[1][2],
    "sort of a copy": lambda x: np.sort(x, axis=1) * np.arange(3.0),
    "__getitem__": lambda x: x[0] * x[1, 2],
    "view": lambda x: x[:].view() * x,
}


@pytest.mark.parametrize("f", METHODS.values(), ids=METHODS.keys())
def test_methods_are_differentiated_like_the_functions_that_they_stand_for(f):
    shape = np.shape(f(X))
    weights = np.cos(np.arange(np.prod(shape, dtype=int))).reshape(shape)
    weigh = lambda x: np.sum(weights * f(x))
    want = differences(weigh, X)
    close(gradient(weigh, X)[0], want, 1e-7, 1e-9)
    v = np.sin(np.arange(6.0)).reshape(2, 3)
    close(jvp(weigh, (X,), (v,))[1], np.sum(want * v), 1e-7, 1e-9)


def test_results_without_a_derivative_are_plain():
    def f(x):
        assert x.argmax() == 3
        assert x.argmin(axis=1).tolist() == [1, 2]
        assert type(x.argsort(axis=1)) is np.ndarray
        assert [a.tolist() for a in x.nonzero()] == [[0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2]]
        assert x.any()
        assert not (x > 0).all()
        assert x[0].searchsorted(0.0) >= 0
        assert not any(istracked(y) for y in (x.argmax(), x.argsort(), x.any(), x.nonzero()[0]))
        return x.sum()

    gradient(f, X)


def test_item_gives_a_traced_number():
    def f(x):
        y = x.sum().item() * x[0, 0].item()
        assert istracked(y)
        assert np.shape(y) == ()
        return y

    want = np.full((2, 3), X[0, 0])
    want[0, 0] += X.sum()
    close(gradient(f, X)[0], want)
    with pytest.raises(ValueError, match="size"):
        gradient(lambda x: x.item(), X)


def test_copies_are_traced_and_of_their_own():
    def f(x):
        for y in (x.copy(), copy.copy(x), copy.deepcopy(x), np.copy(x), copy.deepcopy([x])[0], np.array(x)):
            assert istracked(y)
            assert y is not x
        return np.sum(copy.copy(x) * copy.deepcopy(x) * np.copy(x))

    close(gradient(f, X)[0], 3 * X**2)
    assert gradient(lambda x: copy.deepcopy({"a": [x]})["a"][0] * copy.copy(x), 3.0) == (6.0,)


def test_complex_attributes():
    z = np.array([1 + 2j, -0.5 + 1j])
    close(gradient(lambda z: np.sum(z.real**2 + 3 * z.imag), z)[0], 2 * z.real + 3j)
    close(gradient(lambda z: np.sum((z * z.conj()).real), z)[0], 2 * z)
    assert gradient(lambda z: z.imag * z.real, 2 + 3j) == (3 + 2j,)


def test_an_attribute_that_arrays_do_not_have_is_pythons_attribute_error():
    with pytest.raises(AttributeError, match="nonsense"):
        gradient(lambda x: x.nonsense, 1.0)
    for name in ("grad", "zero_grad"):
        with pytest.raises(AttributeError):
            gradient(lambda x, name=name: getattr(x, name), 1.0)


# --- what it shows -----------------------------------------------------------------------------------------------


def test_repr_shows_the_value_and_that_it_is_traced():
    shown = []

    def f(x, v, n):
        shown.extend([repr(x), repr(v), repr(n), repr(x[0] * 2), repr(np.sum(x))])
        return v * 1.0

    gradient(f, np.array([1.25, 3.0]), 2.0, 7)
    assert shown[:3] == ["traced(array([1.25, 3.  ]))", "traced(2.0)", "traced(7)"]
    assert "2.5" in shown[3]
    assert "4.25" in shown[4]
    assert all(text.startswith("traced(") for text in shown)


def test_str_and_format_show_the_number():
    shown = []

    def f(x, v, n):
        y = x * 2
        shown.extend([str(y), f"{y}", f"{v:.3f}", f"{x[0]:.2f}", f"{np.sum(x):8.3e}", f"{n:03d}", f"{v!s}", "%s" % v])  # noqa: UP031
        shown.append("{:>8}".format(v))  # noqa: UP032
        return v * 1.0

    gradient(f, np.array([1.25, 3.0]), 2.0, 7)
    assert shown == ["[2.5 6. ]", "[2.5 6. ]", "2.000", "1.25", "4.250e+00", "007", "2.0", "2.0", "     2.0"]


def test_values_of_several_levels_show_their_number():
    shown = []
    gradient(lambda x: gradient(lambda y: (shown.extend([repr(x * y), str(x * y)]), x * y)[1], 3.0)[0], 2.0)
    assert shown[1] == "6.0"
    assert "6.0" in shown[0]
    assert "retrograde" not in shown[0]


def test_print_works(capsys):
    gradient(lambda x: (print("x =", x, x[0]), np.sum(x))[1], np.array([1.5, 2.0]))
    assert capsys.readouterr().out == "x = [1.5 2. ] 1.5\n"


def test_a_computed_value_of_parameters_shows_its_value():
    w = param([1.0, 2.0])
    assert "[2., 4.]" in repr(w * 2)
    assert str(w * 2) == "[2. 4.]"
    close(data(w * 2), [2.0, 4.0])


def test_directories_of_names_show_the_array_methods():
    def f(x):
        assert {"shape", "sum", "reshape", "T", "astype"} <= set(dir(x))
        return np.sum(x)

    gradient(f, np.ones(2))


def test_empty_and_zero_dimensional_values_have_their_attributes():
    def f(e, z):
        assert (e.shape, e.size, len(e)) == ((0, 3), 0, 0)
        assert e.sum().shape == ()
        assert (z.shape, z.ndim) == ((), 0)
        assert z.item() == 2.0
        assert z.tolist() == 2.0
        assert z.reshape(1, 1).shape == (1, 1)
        return z.sum() * 2 + e.sum()

    e_bar, z_bar = gradient(f, np.zeros((0, 3)), np.array(2.0))
    assert e_bar.shape == (0, 3)
    close(z_bar, 2.0)


def test_a_number_answers_like_the_scalar_that_numpy_would_make_of_it():
    def f(x):
        assert x.sum() == x.mean() == x.max() == 2.5
        assert x.astype(np.float32).dtype == np.float32
        assert x.reshape(1).shape == (1,)
        assert not x.is_integer()
        return x.sum() * x.ravel()[0]

    assert gradient(f, 2.5) == (5.0,)


def test_flags_tell_the_layout():
    def f(x):
        assert x.flags.c_contiguous
        assert not x.T.flags.c_contiguous
        assert x.T.flags["F_CONTIGUOUS"]
        assert x.flags["W"]
        return np.sum(x * x)

    close(gradient(f, np.ones((2, 3)))[0], 2 * np.ones((2, 3)))


def _set_flags(y, value):
    y.setflags(write=value)


def _set_attribute(y, value):
    y.flags.writeable = value


def _set_item(y, value):
    y.flags["WRITEABLE"] = value


@pytest.mark.parametrize("protect", [_set_flags, _set_attribute, _set_item])
@pytest.mark.parametrize("make", [lambda x: np.zeros(3), lambda x: 2.0 * x, np.copy])
@pytest.mark.parametrize(
    "change",
    [
        lambda y, x: y.__setitem__(0, 1.0),
        lambda y, x: y.__setitem__(0, x[0]),
        lambda y, x: y.__iadd__(1.0),
        lambda y, x: y.__imul__(x),
        lambda y, x: y.fill(1.0),
        lambda y, x: y[1:].__setitem__(0, x[0]),
        lambda y, x: y[::-1].__iadd__(x),
        lambda y, x: np.multiply(y, x, out=y),
        lambda y, x: np.copyto(y, x),
    ],
)
def test_an_array_that_was_made_read_only_is_not_written_to(protect, make, change):
    def f(x):
        y = make(x)
        before = y[:1]
        protect(y, False)
        assert not y.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            change(y, x)
        with pytest.raises(ValueError, match="WRITEABLE"):
            y[1:].setflags(write=True)
        # As in NumPy, a view that was made before may still be written through.
        before[0] = x[1]
        protect(y, True)
        assert y.flags.writeable
        y[2] = x[2]
        return np.sum(y * y)

    def same(x):
        y = make(x)
        y[0], y[2] = x[1], x[2]
        return np.sum(y * y)

    x = np.array([1.0, 2.0, 3.0])
    close(gradient(f, x)[0], gradient(same, x)[0])
    close(jvp(f, (x,), (x,))[1], jvp(same, (x,), (x,))[1])
    close(vmap(f)(np.stack([x, 2 * x])), [f(x), f(2 * x)])


@pytest.mark.parametrize(
    "key", [2, slice(0, 2), slice(5, 9), [0, 1], [], np.array([1, 2]), np.array([True, False] * 2), ...]
)
@pytest.mark.parametrize("writes", [False, True])
def test_the_place_of_a_flat_iterator_after_indexing_is_that_of_numpy(key, writes):
    def place(y):
        q = y.flat
        next(q), next(q)
        if writes:
            q[key] = 1.0
        else:
            q[key]
        return q.index

    seen = []
    gradient(lambda x: np.sum(x) if seen.append(place(x * 1.0)) is None else x, np.arange(4.0))
    assert seen == [place(np.arange(4.0))]
