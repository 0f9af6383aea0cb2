"""sparse_jacobian and sparse_hessian."""

from __future__ import annotations

import os
import tracemalloc

import numpy as np
import programs
import pytest
from truth import close

from retrograde import (
    InputError,
    MissingExtraError,
    MissingRuleError,
    SparsityError,
    checkpointed,
    gradient,
    hessian,
    hook,
    hvp,
    jacobian,
    jvp,
    linear_operator,
    linearize,
    primitive,
    sparse_hessian,
    sparse_jacobian,
    taylor,
)

scipy = pytest.importorskip("scipy")
from scipy import integrate, optimize, sparse  # noqa: E402
from scipy.sparse import linalg  # noqa: E402

N = 7
X = np.linspace(-1.0, 1.5, N)
A = np.random.default_rng(0).standard_normal((4, N))


def filled(x):
    r = np.zeros(N + 1)
    r[0] = np.sum(x**2)
    for i in range(1, N):
        r[i] = x[i] * x[i - 1]
    r[N] += np.exp(x[0])
    return r


FUNCTIONS = {
    "tridiagonal": lambda x: np.sin(x[1:-1]) - x[:-2] * x[2:],
    "writes": filled,
    "dense": lambda x: A @ x**2,
    "tall": lambda x: np.outer(x, x[:2]).ravel(),
    "scalar": lambda x: x[1] * x[2],
    "linear algebra": lambda x: np.linalg.solve(np.diag(x + 3) + np.eye(N, k=1), x),
    "transform": lambda x: np.fft.ifft(np.fft.fft(x) * np.arange(N)).real,
    "constant": lambda x: np.ones(3),
    "nothing": lambda x: x[:0],
    "matrix out": lambda x: x[:6].reshape(2, 3) ** 2,
    "complex out": lambda x: np.exp(1j * x),
    "gradient inside": lambda x: gradient(lambda y: np.sum(y[1:] * y[:-1] ** 2), x)[0],
    "jvp inside": lambda x: jvp(lambda y: y[1:] * y[:-1] ** 2, (x,), (np.ones(N),))[1],
    "checkpoint inside": lambda x: checkpointed(filled, x),
    "hook inside": lambda x: hook(lambda x_bar: None, x) ** 2,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_sparse_jacobian_is_the_jacobian(name):
    f = FUNCTIONS[name]
    J = sparse_jacobian(f, X)
    assert type(J) is sparse.csr_array
    dense = jacobian(f, X)
    close(J.toarray(), np.reshape(dense, (np.size(f(X)), N)))
    assert J.has_canonical_format or not J.nnz


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse", "both"])
@pytest.mark.parametrize("check", [True, False])
def test_every_mode_gives_the_same(mode, check):
    for f in (filled, FUNCTIONS["tridiagonal"], FUNCTIONS["tall"]):
        close(sparse_jacobian(f, X, mode=mode, check=check).toarray(), jacobian(f, X).reshape(-1, N))


def test_rows_and_columns_are_numbers_of_containers():
    x = {"w": np.array([[1.0, 2.0], [3.0, 4.0]]), "b": 2.0, "name": "text"}

    def f(x):
        return [x["w"][0] * x["b"], {"last": x["w"][1, 1] ** 2}]

    J = sparse_jacobian(f, x)
    # Columns: b, w00, w01, w10, w11.
    close(J.toarray(), [[1, 2, 0, 0, 0], [2, 0, 2, 0, 0], [0, 0, 0, 0, 8]])
    close(sparse_jacobian(lambda xs: [xs[0] * xs[1], xs[1]], [2.0, 3.0]).toarray(), [[3, 2], [0, 1]])
    close(sparse_jacobian(lambda x: x**2, 3.0).toarray(), [[6.0]])
    assert sparse_jacobian(lambda x: x * 2, np.ones(2, np.float32)).dtype == np.float32
    close(sparse_jacobian(lambda x: x * 2.5, np.array([1, 2])).toarray(), 2.5 * np.eye(2))


def test_several_arguments_give_several_matrices():
    def f(x, y, *, k):
        return k * x * y[0] + y[1] ** 2

    y = np.array([2.0, 3.0])
    J, K = sparse_jacobian(f, X, y, k=3.0)
    close(J.toarray(), 6 * np.eye(N))
    close(K.toarray(), np.stack([3 * X, np.full(N, 6.0)], axis=1))

    def g(x, y):
        return np.sum(x**2) * y[0] + y[1] ** 3

    H, dense = sparse_hessian(g, X, y), hessian(g, X, y)
    for i in range(2):
        for j in range(2):
            close(H[i][j].toarray(), dense[i][j])


def rosenbrock(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


HESSIANS = {
    "rosenbrock": rosenbrock,
    "arrow": lambda x: x[0] * np.sum(x**2),
    "linear": lambda x: np.sum(x * np.arange(N)),
    "part": lambda x: np.sum(np.sin(x[2:5])) + np.sum(x),
    "norm": lambda x: np.sqrt(np.sum(x**2) + 1),
    "loop": lambda x: sum(x[i] * np.cos(x[i - 1]) for i in range(1, N)),
    "writes": lambda x: np.sum(filled(x)[1:] ** 2),
    "log det": lambda x: np.linalg.slogdet(np.diag(x + 3) + np.eye(N, k=1) + np.eye(N, k=-1))[1],
    "checkpoint": lambda x: checkpointed(rosenbrock, x),
    "jvp inside": lambda x: jvp(rosenbrock, (x,), (np.ones(N),))[1],
    "constant": lambda x: 3.0,
}


@pytest.mark.parametrize("name", HESSIANS)
def test_a_sparse_hessian_is_the_hessian_and_symmetric_to_the_last_digit(name):
    f = HESSIANS[name]
    H = sparse_hessian(f, X)
    close(H.toarray(), hessian(f, X), 1e-9, 1e-11)
    assert (H != H.T).nnz == 0


def test_what_enters_linearly_is_not_in_the_pattern_of_a_hessian():
    assert sparse_hessian(HESSIANS["linear"], X).nnz == 0
    assert sparse_hessian(HESSIANS["part"], X).nnz == 3
    assert sparse_hessian(rosenbrock, X).nnz == 3 * N - 2


def test_a_prepared_derivative_is_called_at_many_points():
    runs = []

    def f(x):
        runs.append(1)
        return x[1:] ** 2 * x[:-1]

    jac = sparse_jacobian(f).prepare(X)
    assert (jac.passes, jac.mode, jac.sparsity.nnz) == (2, "forward", 2 * (N - 1))
    assert jac.sparsity.dtype == bool
    for x in (X, X + 1, np.zeros(N), -X):
        runs.clear()
        close(jac(x).toarray(), jacobian(lambda x: x[1:] ** 2 * x[:-1], x))
        assert len(runs) <= jac.passes + 1
    hess = sparse_hessian(rosenbrock).prepare(np.zeros(N))
    assert hess.passes == 3
    close(hess(X).toarray(), hessian(rosenbrock, X))


def test_only_a_function_gives_a_function():
    close(sparse_jacobian(lambda x, *, n: x**n, n=3)(X).toarray(), np.diag(3 * X**2))
    close(sparse_jacobian(lambda x, *, n: x**n)(X, n=3).toarray(), np.diag(3 * X**2))
    jac = sparse_jacobian(lambda x, *, n=2: x**n).prepare(X, n=3)
    close(jac(X).toarray(), np.diag(3 * X**2))
    close(jac(X, n=4).toarray(), np.diag(4 * X**3))
    close(sparse_hessian(rosenbrock)(X).toarray(), hessian(rosenbrock, X))
    assert repr(sparse_hessian(rosenbrock)) == "<sparse_hessian of 'rosenbrock'>"
    with pytest.raises(InputError, match="no argument was given"):
        sparse_jacobian(rosenbrock).prepare()


def test_the_format_of_the_result_can_be_chosen():
    for form in ("csr", "csc", "coo", "lil", "dok"):
        J = sparse_jacobian(filled, X, format=form)
        assert J.format == form
        assert isinstance(J, sparse.sparray)
        close(J.toarray(), jacobian(filled, X))


def test_changing_a_result_leaves_what_was_prepared():
    jac = sparse_jacobian(FUNCTIONS["tridiagonal"]).prepare(X)
    first = jac(X)
    first.data[:] = 0
    first.eliminate_zeros()
    jac.sparsity.indices[:] = 0
    close(jac(X).toarray(), jacobian(FUNCTIONS["tridiagonal"], X))


# --- patterns that are wrong or given ----------------------------------------------------------------------------


def test_an_outdated_pattern_does_not_pass():
    def f(x):
        return np.maximum(x, 0) ** 2

    jac = sparse_jacobian(f).prepare(X)
    with pytest.raises(SparsityError, match=r"row 0, and 2 rows more(.|\n)*prepare\(...\) again(.|\n)*pattern='all'"):
        jac(-X)
    with pytest.raises(ValueError, match="entries outside of its pattern"):
        jac(-X)
    close(sparse_jacobian(f, pattern="all").prepare(X)(-X).toarray(), np.diag(2 * np.maximum(-X, 0)))
    # Whoever switches the check off gets what the pattern holds.
    assert sparse_jacobian(f, check=False).prepare(X)(-X).toarray()[0, 0] == 0


@pytest.mark.parametrize("mode", ["forward", "reverse", "both"])
def test_every_missing_entry_is_noticed(mode):
    J = jacobian(filled, X)
    places = np.argwhere(J != 0)
    for i, j in places:
        given = J != 0
        given[i, j] = False
        with pytest.raises(SparsityError, match="a larger sparsity="):
            sparse_jacobian(filled, X, sparsity=given, mode=mode)
    H = hessian(rosenbrock, X)
    for i, j in np.argwhere(np.triu(H) != 0):
        given = H != 0
        given[i, j] = given[j, i] = False
        with pytest.raises(SparsityError, match="Hessian has entries outside"):
            sparse_hessian(rosenbrock, X, sparsity=given)


def test_a_small_entry_beside_large_ones_is_noticed_unless_it_is_below_rounding():
    def f(x):
        return np.array([1e4 * x[0] + 1e-4 * x[1], x[2]])

    with pytest.raises(SparsityError, match=r"in row 0: along"):
        sparse_jacobian(f, np.ones(3), sparsity=np.array([[1, 0, 0], [0, 0, 1]]))


def test_rounding_is_no_wrong_pattern():
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        x = rng.uniform(0.5, 2.0, 40).astype(dtype)

        def f(x):
            y = np.cumprod(x) * 1e3
            return np.concatenate([y - y[::-1] * x[0], np.exp(5 * x[1:]) - np.exp(5 * x[:-1])])

        close(sparse_jacobian(f, x).toarray(), jacobian(f, x), 1e-3 if dtype is np.float32 else 1e-8, 1e-1)

    # What cancels leaves the rounding of something large: 1e-8 of a tangent of 1.
    def cancelling(x):
        return (1e8 * x[:-1] * x[1:] + x[1:]) - 1e8 * x[1:] * x[:-1]

    for seed in range(5):
        x = np.random.default_rng(seed).uniform(0.5, 2.0, 20)
        J = sparse_jacobian(cancelling, x).toarray()
        close(J, np.eye(19, 20, k=1), 1e-5, 1e-5)
        with pytest.raises(SparsityError):
            sparse_jacobian(cancelling, x, sparsity=np.eye(19, 20))


def test_a_derivative_that_is_infinite_or_nan_stands_where_it_is():
    J = sparse_jacobian(np.sqrt, np.array([0.0, 4.0]))
    close(J.toarray(), np.diag([np.inf, 0.25]))
    with np.errstate(invalid="ignore"):
        J = sparse_jacobian(lambda x: np.log(x), np.array([np.nan, 4.0]))
    assert np.isnan(J[0, 0])
    assert J[1, 1] == 0.25


def test_a_pattern_of_ones_own_is_taken():
    f = FUNCTIONS["tridiagonal"]
    given = sparse.diags_array([np.ones(N)] * 3, offsets=[0, 1, 2], shape=(N - 2, N))
    J = sparse_jacobian(f, X, sparsity=given)
    assert J.nnz == 3 * (N - 2)
    close(J.toarray(), jacobian(f, X))
    close(sparse_jacobian(f, X, sparsity=np.ones((N - 2, N))).toarray(), jacobian(f, X))
    H = sparse_hessian(rosenbrock, X, sparsity=sparse.csr_matrix(np.ones((N, N))))
    assert H.nnz == N * N
    close(H.toarray(), hessian(rosenbrock, X))

    def g(x, y):
        return x * y[0]

    J, K = sparse_jacobian(g, X, np.array([2.0, 1.0]), sparsity=(np.eye(N), np.ones((N, 2))))
    close(J.toarray(), 2 * np.eye(N))
    close(K.toarray(), np.stack([X, 0 * X], axis=1))

    def h(x, y):
        return np.sum(x**2) * y

    blocks = ((np.eye(N), np.ones((N, 1))), (np.ones((1, N)), np.zeros((1, 1))))
    H = sparse_hessian(h, X, 2.0, sparsity=blocks)
    close(H[0][0].toarray(), 4 * np.eye(N))
    close(H[1][0].toarray(), 2 * X[None])
    assert H[1][1].nnz == 0


def test_a_pattern_that_cannot_be_is_refused():
    with pytest.raises(InputError, match=r"shape \(2, 2\); the Jacobian has \(5, 7\)"):
        sparse_jacobian(FUNCTIONS["tridiagonal"], X, sparsity=np.eye(2))
    with pytest.raises(InputError, match="6 entries have no mirror image"):
        sparse_hessian(rosenbrock, X, sparsity=np.eye(N) + np.eye(N, k=1))
    with pytest.raises(InputError, match="one pattern for each of 2 arguments"):
        sparse_jacobian(lambda x, y: x * y, X, X, sparsity=np.eye(N))


# --- what is refused ---------------------------------------------------------------------------------------------


def test_options_that_do_not_exist_are_refused():
    with pytest.raises(InputError, match="mode='columns' is none of"):
        sparse_jacobian(filled, X, mode="columns")
    with pytest.raises(InputError, match="pattern='any' is neither"):
        sparse_hessian(rosenbrock, X, pattern="any")


def test_a_result_without_numbers_is_refused():
    for result, said in (
        (None, "None"),
        ("text", "a str"),
        ({1, 2}, "a set"),
        ([], "a list"),
        (np.array(["a"]), "a ndarray"),
    ):
        with pytest.raises(InputError, match=f"returns numbers and arrays; it returned {said}"):
            sparse_jacobian(lambda x: result, X)  # noqa: B023
    close(sparse_jacobian(lambda x: [x * 2, "text", True], X).toarray(), 2 * np.eye(N))


def test_a_function_that_is_another_each_time_is_refused_unless_all_passes_are_of_one_run():
    rng = np.random.default_rng(0)
    with pytest.raises(SparsityError, match="draws random numbers"):
        sparse_jacobian(lambda x: x * rng.normal(), X, chunk=1)
    diagonal = sparse_jacobian(lambda x: x * rng.normal(), X).diagonal()
    assert diagonal[0] != 0
    close(diagonal, np.full(N, diagonal[0]))


def test_all_passes_are_one_run_of_the_function():
    runs = []

    def f(x):
        runs.append(0)
        return filled(x)

    for mode in ("forward", "reverse", "both"):
        jac = sparse_jacobian(f, mode=mode).prepare(X)
        hess = sparse_hessian(lambda x: np.sum(f(x) ** 2)).prepare(X)
        assert jac.passes > 1 < hess.passes
        runs.clear()
        close(jac(X).toarray(), jacobian(filled, X))
        assert len(runs) == (2 if mode == "both" else 1)
        runs.clear()
        close(hess(X).toarray(), hessian(lambda x: np.sum(filled(x) ** 2), X))
        assert len(runs) == 1


def test_many_passes_take_memory_for_a_few_at_once():
    n = 2000
    x = np.linspace(0.5, 1.5, n)
    wide = lambda x: np.concatenate([x**2, [np.sum(x)]])  # a row that all columns share: n colours

    def peak(**how):
        jac = sparse_jacobian(wide, mode="forward", **how).prepare(x)
        jac(x)
        tracemalloc.start()
        J = jac(x)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        close(J.toarray(), np.concatenate([np.diag(2 * x), np.ones((1, n))]))
        return found

    assert jac_bytes(n) > 16 * peak(chunk=20)
    assert peak() < 10e6


def jac_bytes(n):
    """What all products of a dense Jacobian take."""
    return 8 * n * n


@pytest.mark.parametrize("chunk", [0, -1, True, 1.5])
def test_a_chunk_is_a_positive_integer(chunk):
    with pytest.raises(InputError, match="no number of directions"):
        sparse_jacobian(filled, X, chunk=chunk)


def test_traced_values_are_refused_with_the_way_out():
    with pytest.raises(InputError, match=r"an argument is traced(.|\n)*jacobian\(f, x\)"):
        gradient(lambda x: np.sum(sparse_jacobian(filled, x) @ X), X)
    with pytest.raises(InputError, match=r"closes over a traced value(.|\n)*hessian\(f, x\)"):
        gradient(lambda a: np.sum(sparse_hessian(lambda x: a * np.sum(x**3), X) @ X), 2.0)


def test_another_shape_than_the_prepared_one_is_refused():
    jac = sparse_jacobian(lambda x: x * 2).prepare(X)
    with pytest.raises(InputError, match="other shapes or containers"):
        jac(np.ones(3))
    with pytest.raises(InputError, match="other shapes or containers"):
        jac([*X])
    size = 3
    jac = sparse_jacobian(lambda x: x[:size]).prepare(X)
    size = 4
    with pytest.raises(InputError, match="returns 4 numbers now; its pattern has 3 rows"):
        jac(X)


def test_complex_arguments_need_a_holomorphic_function():
    z = np.array([1 + 2j, 0.5 - 1j, 2.0])
    J = sparse_jacobian(lambda z: z[1:] ** 2 * z[0], z)
    assert J.nnz == 4
    close(J.toarray(), jacobian(lambda z: z[1:] ** 2 * z[0], z))
    with pytest.raises(InputError, match="not holomorphic"):
        sparse_jacobian(np.conj, z, check=False)
    with pytest.raises(InputError, match="real arguments"):
        sparse_jacobian(lambda z: z * 2, z, mode="reverse")
    with pytest.raises(InputError, match="real functions"):
        sparse_jacobian(lambda x: x * 1j, X, mode="reverse")
    with pytest.raises(InputError, match="no complex Hessian"):
        sparse_hessian(lambda z: np.sum(np.abs(z) ** 2), z)


def test_without_scipy_the_error_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    for transform in (lambda: sparse_jacobian(filled, X), lambda: sparse_hessian(rosenbrock, X)):
        with pytest.raises(MissingExtraError, match=r"'\.\[scipy\]'"):
            transform()


def test_a_rule_without_a_pushforward_is_met_in_reverse_mode():
    @primitive
    def double(x):
        return 2 * x

    double.defpullback(lambda y, x: lambda y_bar: (2 * y_bar,))
    jac = sparse_jacobian(lambda x: double(x[:2]) * x[2:4], sparsity=None).prepare(X)
    wanted = jacobian(lambda x: 2 * x[:2] * x[2:4], X)
    close(jac(X).toarray(), wanted)
    assert jac.mode == "reverse"
    with pytest.raises(MissingRuleError):
        sparse_jacobian(lambda x: double(x), X, mode="forward")
    close(sparse_hessian(lambda x: np.sum(double(x) ** 3), X).toarray(), np.diag(48 * X))


def test_a_pattern_as_full_as_a_dense_matrix_is_refused_before_memory_is_full():
    opaque = primitive(lambda x: 2 * x)
    with pytest.raises(InputError, match=r"entries or more(.|\n)*linear_operator"):
        sparse_jacobian(opaque, np.ones(200_000))


def test_the_caller_keeps_its_arrays():
    x = X.copy()

    def f(x):
        x[0] *= 2
        return x**2

    J = sparse_jacobian(f, x)
    close(x, X)
    close(J.toarray(), np.diag(2 * X) * np.diag([4.0, *[1.0] * (N - 1)]))
    close(sparse_jacobian(f, x, sparsity=np.eye(N)).toarray(), J.toarray())
    close(x, X)


def test_nothing_is_left_behind_when_the_function_fails():
    with pytest.raises(ZeroDivisionError):
        sparse_jacobian(lambda x: x / (1 // 0), X)
    assert np.zeros(2).__class__ is np.ndarray
    close(sparse_jacobian(lambda x: x * 2, X).toarray(), 2 * np.eye(N))


# --- nesting -----------------------------------------------------------------------------------------------------


def inner(x):
    return np.sum(x[1:] * x[:-1] ** 2) + np.sin(x[0] * x[1])


INSIDE = {
    "reverse": lambda x: gradient(inner, x)[0],
    "forward": lambda x: jvp(lambda y: y[1:] * y[:-1] ** 2, (x,), (np.ones(N),))[1],
    "taylor": lambda x: taylor(lambda y: y[1:] * y[:-1] ** 2, x, np.ones(N), 2)[2],
    "checkpointed": lambda x: checkpointed(lambda y: y[1:] * y[:-1] ** 2, x),
    "checkpointed in reverse": lambda x: gradient(lambda y: checkpointed(inner, y), x)[0],
    "reverse in forward": lambda x: jvp(lambda y: gradient(inner, y)[0], (x,), (np.arange(N) / 4,))[1],
    "forward in reverse": lambda x: gradient(lambda y: jvp(inner, (y,), (np.ones(N),))[1] * 1.0, x)[0],
    "linearised": lambda x: linearize(lambda y: y[1:] * y[:-1] ** 2, x)[1](np.ones(N)),
    "hessian": lambda x: np.diagonal(hessian(inner, x)),
}


@pytest.mark.parametrize("name", INSIDE)
def test_transforms_inside_of_a_sparse_one_agree_with_the_dense_one(name):
    f = INSIDE[name]
    J = sparse_jacobian(f, X)
    close(J.toarray(), jacobian(f, X), 1e-9, 1e-11)
    assert J.nnz < J.shape[0] * N
    close(sparse_hessian(lambda x: np.sum(f(x)), X).toarray(), hessian(lambda x: np.sum(f(x)), X), 1e-8, 1e-9)


OUTSIDE = {
    "reverse": lambda f, x: gradient(lambda x: np.sum(f(x) @ X), x),
    "forward": lambda f, x: jvp(lambda x: f(x) @ X, (x,), (x,)),
    "taylor": lambda f, x: taylor(lambda x: f(x) @ X, x, x, 2),
    "checkpointed in reverse": lambda f, x: gradient(lambda x: checkpointed(lambda x: np.sum(f(x) @ X), x), x),
    "sparse": lambda f, x: sparse_jacobian(lambda x: f(x) @ X, x),
    "sparse hessian": lambda f, x: sparse_hessian(lambda x: np.sum(f(x) @ X), x),
    "linearised": lambda f, x: linearize(lambda x: f(x) @ X, x),
}


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("transform", [sparse_jacobian(filled), sparse_hessian(inner)], ids=["jacobian", "hessian"])
def test_a_sparse_transform_of_traced_values_is_refused_inside_of_every_other(name, transform):
    with pytest.raises(InputError, match="an argument is traced, and the result of sparse_"):
        OUTSIDE[name](transform, X)


def test_a_sparse_transform_of_constants_may_stand_inside_of_others():
    def f(x):
        return np.sum(x**2 * (sparse_jacobian(filled, X).T @ filled(X)))

    close(gradient(f, X)[0], 2 * X * (jacobian(filled, X).T @ filled(X)))


# --- random programs ---------------------------------------------------------------------------------------------

SEEDS = range(2000 if "RETROGRADE_LONG" in os.environ else 40)


def test_sparse_hessians_of_random_programs_are_their_hessians():
    for seed in SEEDS:
        rng = np.random.default_rng(10_000 + seed)
        program = programs.draw_program(lambda n: int(rng.integers(n)), programs.KINDS, ("C",))  # noqa: B023
        f, xs = program.function(programs.TRACED), program.arrays()
        if any(np.size(x) > 4 for x in xs):
            continue
        H, dense = sparse_hessian(f, *xs), hessian(f, *xs)
        blocks = (
            [(H, dense)] if len(xs) == 1 else [(H[i][j], dense[i][j]) for i in range(len(xs)) for j in range(len(xs))]
        )
        for found, wanted in blocks:
            close(found.toarray(), np.reshape(wanted, found.shape), 1e-8, 1e-10)


# --- SciPy's optimisers and integrators ----------------------------------------------------------------------------


def test_least_squares_takes_a_sparse_jacobian():
    def broyden(x):
        """Broyden's tridiagonal function."""
        h = np.zeros(len(x) + 2)
        h[1:-1] = x
        return (3 - x) * x + 1 - h[:-2] - 2 * h[2:]

    x0 = -np.ones(50)
    jac = sparse_jacobian(broyden).prepare(x0)
    assert jac.passes == 3
    found = optimize.least_squares(broyden, x0, jac=jac)
    assert found.success
    close(broyden(found.x), np.zeros(50), 0, 1e-7)
    found = optimize.least_squares(broyden, x0, jac=lambda x: linear_operator(broyden, x), tr_solver="lsmr")
    close(broyden(found.x), np.zeros(50), 0, 1e-5)


def test_trust_constr_takes_sparse_hessians_and_jacobians():
    x0 = np.full(10, -0.5)
    hess = sparse_hessian(rosenbrock).prepare(x0)
    found = optimize.minimize(
        rosenbrock,
        x0,
        jac=lambda x: gradient(rosenbrock, x)[0],
        hess=hess,
        method="trust-constr",
        options={"gtol": 1e-9},
    )
    close(found.x, np.ones(10), 0, 1e-5)

    def circle(x):
        return x[:-1] ** 2 + x[1:] ** 2

    constraint = optimize.NonlinearConstraint(
        circle,
        -np.inf,
        1.0,
        jac=sparse_jacobian(circle).prepare(x0),
        hess=lambda x, v: sparse_hessian(lambda x: circle(x) @ v, x),
    )
    found = optimize.minimize(
        rosenbrock,
        x0,
        jac=lambda x: gradient(rosenbrock, x)[0],
        hess=hess,
        method="trust-constr",
        constraints=[constraint],
        options={"gtol": 1e-8, "maxiter": 500},
    )
    assert np.all(circle(found.x) <= 1 + 1e-8)
    by_slsqp = optimize.minimize(
        rosenbrock,
        x0,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda x: 1 - circle(x)},
        options={"ftol": 1e-12},
    )
    close(found.fun, by_slsqp.fun, 1e-5)


def test_newton_methods_take_sparse_hessians_and_products():
    x0 = np.full(10, -0.5)
    slope = lambda x: gradient(rosenbrock, x)[0]
    hess = sparse_hessian(rosenbrock, format="csc").prepare(x0)
    found = optimize.minimize(
        rosenbrock, x0, jac=slope, hess=lambda x: linear_operator(rosenbrock, x, "hessian"), method="Newton-CG"
    )
    close(found.x, np.ones(10), 0, 1e-4)
    found = optimize.minimize(rosenbrock, x0, jac=slope, hessp=lambda x, v: hvp(rosenbrock, x, v), method="trust-ncg")
    close(found.x, np.ones(10), 0, 1e-4)
    x = x0
    for _ in range(30):
        step = linalg.spsolve(hess(x) + 1e-3 * sparse.eye_array(10), -slope(x))
        t = 1.0
        while rosenbrock(x + t * step) > rosenbrock(x):
            t /= 2
        x = x + t * step
    close(x, np.ones(10), 0, 1e-6)


def test_a_stiff_integrator_takes_a_sparse_jacobian():
    n = 30
    h = 1 / (n + 1)

    def heat(t, u):
        r = np.zeros(n)
        r[:] = -2 * u
        r[1:] += u[:-1]
        r[:-1] += u[1:]
        return r / h**2 - u**3

    u0 = np.sin(np.pi * h * np.arange(1, n + 1))
    jac = sparse_jacobian(lambda u: heat(0.0, u)).prepare(u0)
    found = integrate.solve_ivp(heat, (0, 0.1), u0, method="BDF", jac=lambda t, u: jac(u), rtol=1e-8, atol=1e-10)
    plain = integrate.solve_ivp(heat, (0, 0.1), u0, method="BDF", rtol=1e-8, atol=1e-10)
    close(found.y[:, -1], plain.y[:, -1], 1e-5, 1e-8)
    assert found.njev > 0


@pytest.mark.parametrize("scales", [(1e6, 1e-6), (1e11, 0.1), (1e-9, 1e5), (1.0, 1.0)])
def test_an_outdated_pattern_is_seen_in_a_row_of_any_unit(scales):
    large, small = scales
    prepared = sparse_jacobian(lambda x: np.array([large * x[0], small * np.maximum(x[1], 0.0)])).prepare(
        np.array([1.0, -1.0])
    )
    with pytest.raises(SparsityError, match="row 1"):
        prepared(np.array([1.0, 1.0]))


@pytest.mark.parametrize("f", [lambda x: np.sin(x) ** 2 + np.cos(x) ** 2, lambda x: np.log(np.exp(x)) - x])
def test_derivatives_that_are_zero_up_to_rounding_are_no_missing_entries(f):
    x = np.array([0.5, 1.2, 0.8])
    np.testing.assert_allclose(sparse_jacobian(f, x).toarray(), 0, atol=1e-15)
