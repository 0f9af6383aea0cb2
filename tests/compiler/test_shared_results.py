"""Results that are views of arguments, or of each other, are so inside of every transform, as in NumPy."""

import numpy as np
import pytest

import retrograde as rg
from retrograde.compiler.shared import part, place_in

X = np.random.default_rng(0).uniform(1, 2, (3, 6))
W = np.random.default_rng(1).uniform(1, 2, (3, 6))


def whole(x, w):
    return x


def some(x, w):
    return x[1:], x * w, w


def exchanged(x, w):
    return w, x[::-2]


def written(x, w):
    x[0] = 2 * w[0]
    return x, w[1:]


def reshaped(x, w):
    return x.reshape(2, 3), w.reshape(3, 2).T


def rows(x, w):
    return x.reshape(2, 3)[1], w[2:3]


def fresh(x, w):
    y = x * w
    return y, y[1:]


def overlapping(x, w):
    y = x * w
    return y[:-2], y[1:], w


def chosen(x, w):
    a = x
    if w.size > 3:
        a = w
    return a, x


FUNCTIONS = [whole, some, exchanged, written, reshaped, rows, fresh, overlapping, chosen]


def loss_of(g, writes_into):
    """A function that writes into an argument or the results after the call, and looks at all."""

    def loss(x, w):
        x, w = np.copy(x), np.copy(w)
        r = g(x, w)
        r = r if isinstance(r, tuple) else (r,)
        if writes_into == "arguments":
            x[2] = x[0] * 3
            w[2] = x[1] * w[0]
        else:
            r[0][..., 1] = x[0] * 3
            r[-1][..., 0] = w[1] * r[0][..., 0].sum()
        total = np.sum(x**3) + np.sum(w * np.arange(1.0, 7.0))
        for k, a in enumerate(r):
            total = total + np.sum(np.ravel(a) ** 2 * np.arange(1.0, a.size + 1)) * (k + 1)
        return total

    return loss


TRANSFORMS = {
    "gradient": lambda f: rg.gradient(f, X[0], W[0]),
    "gradient in one": lambda f: rg.gradient(lambda x: f(x, W[0]), X[0]),
    "jvp": lambda f: rg.jvp(f, (X[0], W[0]), (W[0], X[1])),
    "hvp": lambda f: rg.hvp(lambda x: f(x, W[0]), X[0], W[0]),
    "vmap": lambda f: rg.vmap(f)(X, W),
    "vmap in one": lambda f: rg.vmap(lambda x: f(x, W[0]))(X),
    "vmap of gradients": lambda f: rg.vmap(rg.grad(f, argnums=(0, 1)))(X, W),
    "vmap of jvps": lambda f: rg.vmap(lambda x, w: rg.jvp(f, (x, w), (w, x))[1])(X, W),
    "gradient of a vmap": lambda f: rg.gradient(lambda x, w: np.sum(rg.vmap(f)(x, w)), X, W),
    "forward jacobian": lambda f: rg.jacobian(f, X[0], W[0], mode="forward"),
    "vmap of a vmap": lambda f: rg.vmap(lambda x: rg.vmap(lambda w: f(x, w))(W))(X),
}


@pytest.mark.parametrize("writes_into", ["arguments", "results"])
@pytest.mark.parametrize("g", FUNCTIONS, ids=lambda g: g.__name__)
def test_what_is_written_into_one_is_seen_in_the_other(g, writes_into):
    compiled = rg.compile(g, cache=False)
    for name, transform in TRANSFORMS.items():
        expected = transform(loss_of(g, writes_into))
        found = transform(loss_of(compiled, writes_into))
        for a, b in zip(_flat(expected), _flat(found), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, err_msg=f"{name} of {g.__name__}")


def _flat(value):
    return [leaf for part in value for leaf in _flat(part)] if isinstance(value, tuple | list) else [value]


def _check_equal(expected, found):
    for a, b in zip(_flat(expected), _flat(found), strict=True):
        np.testing.assert_allclose(a, b)


def test_examples_that_differ_in_what_they_return_get_copies():
    def nearer(x, w):
        if x[0] > 1.5:
            return x
        return w[1:]

    compiled = rg.compile(nearer, cache=False)
    x = np.array([[2.0, 3.0], [4.0, 5.0]])
    w = np.array([7.0, 8.0, 9.0])
    np.testing.assert_array_equal(rg.vmap(lambda x: compiled(x, w))(x - [[0, 0], [3, 3]]), [[2.0, 3.0], [8.0, 9.0]])
    gradients = rg.vmap(rg.grad(lambda x: np.sum(compiled(x, w) ** 2)))(x - [[0, 0], [3, 3]])
    np.testing.assert_array_equal(gradients, [[4.0, 6.0], [0.0, 0.0]])


def test_parts_of_complex_numbers_are_views():
    def parts(z):
        return z.real[1:], z.imag

    def loss(g):
        def f(x):
            z = x * (1 + 2j)
            re, im = g(z)
            z[2] = x[0] * 3j
            return np.sum(re**2) + np.sum(im**3)

        return f

    compiled = rg.compile(parts, cache=False)
    x = np.array([0.5, 1.5, -1.0])
    for transform in (lambda f: rg.gradient(f, x), lambda f: rg.jvp(f, (x,), (x,)), lambda f: rg.vmap(f)(X[:, :3])):
        _check_equal(transform(loss(parts)), transform(loss(compiled)))


def test_integers_are_views_of_the_arguments_too():
    def halves(k, x):
        return k[2:], x * 2

    compiled = rg.compile(halves, cache=False)

    def f(x):
        k = np.arange(4)
        later, y = compiled(k, x)
        k[3] = 1
        return y[later[1]] * 10

    np.testing.assert_array_equal(rg.gradient(f, np.arange(4.0))[0], [0, 20, 0, 0])


def test_what_numba_cannot_compile_gives_views_too():
    def spread(x):
        return x.T, np.trapezoid(x)

    compiled = rg.compile(spread, cache=False)
    x = np.ones((2, 3))
    y, _ = compiled(x)
    x[0, 2] = 5.0
    assert y[2, 0] == 5.0


def test_a_part_that_slices_cannot_give_is_refused():
    row = np.arange(10.0)
    windows = np.lib.stride_tricks.as_strided(row, (4, 3), (8, 8))
    place = place_in(row.__array_interface__["data"][0], row.dtype, row.shape, (1,), windows)
    with pytest.raises(rg.ConversionError, match="a part of an argument of shape"):
        part(row, place)


def test_any_view_made_of_slices_and_shapes_is_made_again():
    rng = np.random.default_rng(3)
    for _ in range(2000):
        shape = tuple(rng.integers(1, 5, rng.integers(1, 4)))
        x = np.arange(np.prod(shape), dtype=rng.choice([float, complex])).reshape(shape)
        x = np.array(x, order=rng.choice(["C", "F"]))
        if rng.integers(2):
            x = np.repeat(x, 2, 0)[::-2]  # with gaps, backwards
            x = np.repeat(x, 3, -1)[..., ::3]
        y = x
        for _ in range(rng.integers(0, 5)):
            y = _looked_into(y, rng)
        if y.size == 0 or not np.may_share_memory(x, y):
            continue
        sizes = tuple(0 if n == 1 else s // x.itemsize for n, s in zip(x.shape, x.strides, strict=True))
        place = place_in(x.__array_interface__["data"][0], x.dtype, x.shape, sizes, y)
        again = part(x, place)
        assert again.shape == y.shape
        np.testing.assert_array_equal(again, y)
        assert np.may_share_memory(again, x)


def _looked_into(y, rng):
    what = rng.integers(6)
    if what == 0 and y.ndim:
        return y[tuple(_slice(n, rng) for n in y.shape)]
    if what == 1 and y.ndim:
        axis = rng.integers(y.ndim)
        return y[(slice(None),) * axis + (slice(0, 1),)]
    if what == 2:
        return y.transpose(rng.permutation(y.ndim))
    if what == 3:
        return y[..., None]
    if what == 4 and y.flags.c_contiguous and y.size % 2 == 0:
        return y.reshape(2, -1)
    if what == 5 and np.iscomplexobj(y):
        return y.real if rng.integers(2) else y.imag
    return y


def _slice(n, rng):
    start, stop = sorted(rng.integers(0, n + 1, 2))
    step = int(rng.choice([1, 1, 2, -1]))
    return slice(start, stop, step) if step > 0 else slice(None, None, step)


def test_a_part_of_one_of_two_arguments_that_overlap_is_a_part_of_that_one():
    def parts(a, b):
        return b[::3], b, a[0:1]

    compiled = rg.compile(parts, cache=False)

    def loss(g):
        def f(x):
            z = x * 1.0
            p, q, r = g(z[1:], z)
            z[1] = x[2] * 5
            return np.sum(p**2) + np.sum(q**3) + r[0]

        return f

    for transform in (
        lambda f: rg.gradient(f, X[0]),
        lambda f: rg.jvp(f, (X[0],), (X[1],)),
        lambda f: rg.vmap(rg.grad(f))(X),
        lambda f: rg.gradient(lambda x: f(x[:6]), np.append(X[0], 1.0)),
    ):
        _check_equal(transform(loss(parts)), transform(loss(compiled)))
    # The same array of the caller's, twice: it is the second argument that is given back.
    first, second = rg.gradient(lambda a, b: np.sum(compiled(a, b)[1] ** 2), X[0], X[0])
    assert first is None
    np.testing.assert_allclose(second, 2 * X[0])


@pytest.mark.parametrize(
    "write",
    [
        lambda z, s: z.__setitem__(0, s),
        lambda z, s: z.fill(s),
        lambda z, s: np.add(z, s, out=z),
        lambda z, s: np.put(z, [0, 2], s),
        lambda z, s: z.__iadd__(s),
    ],
)
def test_what_depends_on_nothing_can_be_written_into(write):
    def blank(x):
        return np.zeros(3), np.sum(x)

    def loss(g):
        def f(x):
            z, s = g(x)
            write(z, s**2)
            return np.sum(z * np.arange(1.0, 4.0))

        return f

    compiled = rg.compile(blank, cache=False)
    for transform in (lambda f: rg.gradient(f, X[0]), lambda f: rg.jvp(f, (X[0],), (X[1],)), lambda f: rg.vmap(f)(X)):
        _check_equal(transform(loss(blank)), transform(loss(compiled)))


def test_integers_made_inside_of_a_batch_are_data():
    def picked(k, x):
        return k[1:], x * 2.0

    compiled = rg.compile(picked, cache=False)

    def f(x):
        later, y = compiled(np.arange(6), x)
        return np.sum(y[1:] * later)

    np.testing.assert_allclose(rg.vmap(f)(X), [f(x) for x in X])
    np.testing.assert_allclose(rg.jacobian(f, X[0], mode="forward"), [0, 2, 4, 6, 8, 10])


def test_what_numpy_copies_of_an_argument_with_gaps_is_a_copy():
    def flat(a):
        return a.ravel()

    def dense(a, b):
        return np.ascontiguousarray(a), b[1:]

    def loss(g):
        def f(x):
            around = np.copy(x)
            r = g(around[::2], around) if g in (dense, of_dense) else (g(around[::2]), around[1:])
            r[0][...] = r[0] * 3.0
            r[1][0] = x[0]
            return np.sum(around**2) + np.sum(r[0])

        return f

    of_dense = rg.compile(dense, cache=False)
    for g, compiled in ((flat, rg.compile(flat, cache=False)), (dense, of_dense)):
        for transform in (
            lambda f: rg.withgradient(f, X[0]),
            lambda f: rg.jvp(f, (X[0],), (X[1],)),
            lambda f: rg.vmap(rg.grad(f))(X),
        ):
            for a, b in zip(_flat(tuple(transform(loss(g)))), _flat(tuple(transform(loss(compiled)))), strict=True):
                np.testing.assert_allclose(a, b)


def test_results_that_share_memory_at_places_of_each_example_are_copies():
    def window(a, k):
        y = a * 2.0
        return y, y[k : k + 2]

    compiled = rg.compile(window, cache=False)
    k = np.array([0, 2, 1])

    def f(x, k):
        y, part = compiled(x, k)
        return np.sum(y**2) + np.sum(part)

    np.testing.assert_allclose(rg.vmap(f)(X, k), [f(x, n) for x, n in zip(X, k, strict=True)])
    gradients = rg.vmap(rg.grad(f))(X, k)
    np.testing.assert_allclose(
        gradients, [rg.gradient(lambda x, n=n: f(x, int(n)), x)[0] for x, n in zip(X, k, strict=True)]
    )


def test_a_shape_that_numba_does_not_give_an_array_with_gaps_is_that_of_the_compilers_own_program():
    def turned(a):
        return a.T.reshape(-1), a * 2.0

    compiled = rg.compile(turned, cache=False)
    a = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(compiled(a)[0], turned(a)[0])
    f = lambda a: np.sum(compiled(a)[0] * np.arange(6.0))
    np.testing.assert_array_equal(rg.gradient(f, a)[0], np.arange(6.0).reshape(3, 2).T)


def test_fresh_complex_numbers_and_their_parts_share_memory():
    def parts(z):
        o = z * (2 + 1j)
        return o.imag, o, o.real[1:]

    compiled = rg.compile(parts, cache=False)

    def loss(g):
        def f(x):
            im, o, re = g(x * (1 - 1j))
            o[1] = x[0] * 3j
            im[0] = x[2]
            return np.sum(im**3) + np.sum(np.abs(o) ** 2) + np.sum(re**2)

        return f

    x = np.array([0.5, 1.5, -1.0])
    for transform in (lambda f: rg.gradient(f, x), lambda f: rg.jvp(f, (x,), (x,)), lambda f: rg.vmap(f)(X[:, :3])):
        _check_equal(transform(loss(parts)), transform(loss(compiled)))


@pytest.mark.parametrize("gives_a_view", [False, True])
@pytest.mark.parametrize("writes_first", [True, False])
def test_what_was_written_before_an_exception_is_not_lost_in_silence(writes_first, gives_a_view):
    def checked(x, out):
        if writes_first:
            out[0] = x[0] * 2.0
        if x[0] > 0.0:
            raise ValueError("stop")
        out[1] = x[1]
        return out[1:] if gives_a_view else out[1:] * 1.0

    compiled = rg.compile(checked, cache=False)

    def f(x):
        out = np.ones(2)
        try:
            compiled(x, out)
        except rg.MutationError:
            raise
        except ValueError:
            pass
        return np.sum(out**2) * x[1]

    x = np.array([1.0, 2.0])
    transforms = (
        lambda: rg.gradient(f, x)[0][1],
        lambda: rg.jvp(f, (x,), (x,))[1] / 2,
        lambda: rg.vmap(f)(x[None])[0] / 2,
    )
    for transform in transforms:
        if writes_first:
            with pytest.raises(rg.MutationError, match="raised ValueError when it had written"):
                transform()
        else:
            assert transform() == 2.0


def test_one_element_that_is_repeated_is_a_view_of_it():
    def repeated(x, w):
        return np.broadcast_to(x[1:2], (3,)), np.broadcast_to(w, (2, 6))

    compiled = rg.compile(repeated, cache=False)

    def loss(g):
        def f(x, w):
            x, w = np.copy(x), np.copy(w)
            a, b = g(x, w)
            x[1] = x[0] * w[2]
            w[5] = x[0] ** 2
            return np.sum(a**2 * np.arange(3.0)) + np.sum(b**3)

        return f

    for transform in (lambda f: rg.gradient(f, X[0], W[0]), lambda f: rg.vmap(rg.grad(f))(X, W)):
        _check_equal(transform(loss(repeated)), transform(loss(compiled)))
