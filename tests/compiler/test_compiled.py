"""The object that `compile` makes: called like the function, differentiated natively, and inside traced functions."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from typing import Any, NamedTuple

import numpy as np
import pytest
from truth import close, differences

import retrograde as rg
from retrograde import InputError, MutationError
from retrograde.compiler import native
from retrograde.compiler.compiled import Compiled
from retrograde.compiler.specialisation import Specialisation

numba = pytest.importorskip("numba")

X = np.array([0.5, -1.5, 2.0])


def plain_weighted(x, w=2.0, n=3):
    s = 0.0
    for i in range(n):
        s += np.sin(x[i]) * w * squares(x)
    return s


def squares(x):
    return np.sum(x * x)


weighted = rg.compile(plain_weighted)


@rg.compile
def fill(x, out):
    for i in range(len(x)):
        out[i] = out[i] * x[i] ** 2
    return np.sum(out)


def loss_with_writes(x, fill):
    out = np.zeros(3)
    out[:] = x + 1.0
    total = fill(x, out)
    return np.sum(out * out * x) * total


def test_a_call_gives_the_value_of_the_function_to_the_last_bit():
    assert weighted(X) == numba.njit(plain_weighted_alone)(X)
    assert weighted(X, n=2, w=1.0) == pytest.approx(plain_weighted(X, 1.0, 2), rel=1e-14)


def plain_weighted_alone(x, w=2.0, n=3):
    s = 0.0
    for i in range(n):
        s += np.sin(x[i]) * w * np.sum(x * x)
    return s


def test_a_call_writes_into_its_arguments_as_the_function_does():
    out = np.ones(3)
    total = fill(X, out)
    close(out, X**2)
    close(total, np.sum(X**2))


def test_exceptions_of_the_function_are_its_own():
    @rg.compile
    def checked(x):
        if x < 0:
            raise ValueError("negative")
        return 1.0 / x

    with pytest.raises(ValueError, match="negative"):
        checked(-1.0)
    with pytest.raises(ZeroDivisionError):
        checked(0.0)
    with pytest.raises(ValueError, match="negative"):
        rg.gradient(checked, -1.0)
    with pytest.raises(rg.LossError):
        rg.gradient(checked, 0.0)


def test_the_gradient_has_one_entry_for_each_argument_and_none_for_integers():
    (x_bar, w_bar, n_bar) = rg.gradient(weighted, X, 2.0, 3)
    close(x_bar, differences(plain_weighted, X), rtol=1e-8)
    close(w_bar, plain_weighted(X, 1.0))
    assert type(w_bar) is float
    assert n_bar is None
    assert rg.gradient(weighted, X)[0].tolist() == x_bar.tolist()
    value, grads = rg.withgradient(weighted, X, w=2.0)
    close(value, plain_weighted(X))
    assert len(grads) == 1
    assert rg.grad(weighted, 1)(X, 2.0, 3) == w_bar


def test_the_gradient_of_an_array_that_is_not_reached_is_none_and_grad_gives_zeros():
    @rg.compile
    def first(x, y):
        return x[0] * 2.0

    assert rg.gradient(first, X, X)[1] is None
    assert rg.grad(first, 1)(X, X).tolist() == [0, 0, 0]


class Layer(NamedTuple):
    weights: Any
    bias: float


def test_named_tuples_come_back_as_themselves():
    @rg.compile
    def apply(layer, x):
        return np.sum(layer.weights * x) * layer.bias

    (bars, _) = rg.gradient(apply, Layer(X, 0.5), X)
    assert type(bars) is Layer
    close(bars.weights, X * 0.5)
    close(bars.bias, np.sum(X * X))


def test_gradients_do_not_change_the_arguments():
    x, out = X.copy(), np.ones(3)
    rg.gradient(fill, x, out)
    assert x.tolist() == X.tolist()
    assert out.tolist() == [1, 1, 1]


@pytest.mark.usefixtures("as_plain_python")
def test_a_compiled_function_is_differentiated_inside_a_traced_one_in_every_mode_and_order():
    def compiled_loss(x):
        return loss_with_writes(x, fill)

    def plain_loss(x):
        return loss_with_writes(x, fill.__wrapped__)

    x = np.array([0.5, 0.7, 1.1])
    v = np.array([1.0, -0.5, 0.25])
    close(compiled_loss(x), plain_loss(x))
    close(rg.gradient(compiled_loss, x)[0], rg.gradient(plain_loss, x)[0])
    close(rg.jvp(compiled_loss, (x,), (v,))[1], rg.jvp(plain_loss, (x,), (v,))[1])
    close(rg.hessian(compiled_loss, x), rg.hessian(plain_loss, x))
    close(rg.hvp(compiled_loss, x, v), rg.hvp(plain_loss, x, v))

    def of_gradient(loss):
        return rg.gradient(lambda x: np.sum(v * rg.gradient(loss, x)[0]), x)[0]

    close(of_gradient(compiled_loss), of_gradient(plain_loss))

    def third(loss):
        return rg.jvp(lambda x: rg.hvp(loss, x, v), (x,), (v[::-1].copy(),))[1]

    close(third(compiled_loss), third(plain_loss))
    close(rg.gradient(lambda x: np.sum(rg.hvp(compiled_loss, x, v)), x)[0], third_by_rows(plain_loss, x, v))


def third_by_rows(loss, x, v):
    return rg.gradient(lambda x: np.sum(rg.hvp(loss, x, v)), x)[0]


@pytest.mark.usefixtures("as_plain_python")
def test_jacobians_of_array_results():
    @rg.compile
    def powers(x):
        return x * x[0], x[1:] ** 3

    jacobian = rg.jacobian(lambda x: powers(x)[0], X)
    close(jacobian, np.diag(np.full(3, X[0])) + np.outer(X, [1, 0, 0]))
    y, back = rg.pullback(powers, X)
    assert type(y) is tuple
    close(back((np.zeros(3), np.ones(2)))[0], [0, *(3 * X[1:] ** 2)])


def test_parameters_and_scalars_of_an_outer_function():
    p = rg.param(X)
    grads = rg.gradient(lambda: weighted(p), rg.Params([p]))
    close(grads[p], rg.gradient(weighted, X)[0])
    close(rg.gradient(lambda w: weighted(X, w) * w, 3.0)[0], 2 * plain_weighted(X, 3.0))


def test_a_traced_value_written_into_a_plain_array_is_refused():
    out = np.ones(3)
    with pytest.raises(MutationError, match="fill would write traced values into a plain array"):
        rg.gradient(lambda x: fill(x, out), X)


def test_arguments_that_share_memory_with_a_written_one_are_refused_in_derivatives():
    x = np.arange(6.0)
    with pytest.raises(InputError, match="shares memory with number 1"):
        rg.gradient(fill, x[:3], x[1:4])


def test_zero_times_infinity_is_zero():
    @rg.compile
    def guarded(x):
        return np.sum(np.where(x > 0, np.sqrt(np.abs(x)), 0.0))

    x = np.array([0.0, 4.0])
    assert rg.gradient(guarded, x)[0].tolist() == [0.0, 0.25]
    assert rg.jvp(guarded, (x,), (np.array([0.0, 1.0]),))[1] == 0.25


def test_axes_of_length_one_are_stretched_where_only_the_shapes_show_it():
    @rg.compile
    def product(a, b):
        return np.sum(a * b)

    column, matrix = np.ones((2, 1)), np.ones((2, 3))
    for a, b in ((matrix, matrix), (column, matrix), (matrix, column), (matrix, matrix), (column, column)):
        want = rg.gradient(lambda a, b: np.sum(a * b), a, b)
        for got, right in zip(rg.gradient(product, a, b), want, strict=True):
            assert got.tolist() == right.tolist()
    with pytest.raises(ValueError, match=r"could not be broadcast together  \(test_compiled.py"):
        rg.gradient(product, np.ones((2, 4)), matrix)


def test_views_single_precision_and_read_only_arrays():
    close(rg.gradient(weighted, X[::-1])[0], rg.gradient(weighted, X)[0][::-1])
    single = rg.gradient(weighted, X.astype(np.float32))[0]
    assert single.dtype == np.float32
    frozen = X.copy()
    frozen.flags.writeable = False
    close(rg.gradient(weighted, frozen)[0], rg.gradient(weighted, X)[0])


@pytest.mark.parametrize("kind", [np.float32, np.complex64])
def test_numbers_in_single_precision_stay_so(kind):
    @rg.compile
    def square(z):
        return z * z

    z = kind(1.5)
    for f in (square, lambda z: square(z) * z):
        y, y_dot = rg.jvp(f, (z,), (kind(2),))
        assert (type(y), type(y_dot)) == (kind, kind)
        value, back = rg.pullback(f, z)
        assert (type(value), type(back(kind(1))[0])) == (kind, kind)
    close(rg.jvp(square, (z,), (kind(2),))[1], 6.0)
    assert rg.vmap(square)(np.full(3, z)).dtype == kind
    if kind is np.float32:
        value, (slope,) = rg.withgradient(square, z)
        assert (type(value), type(slope), slope) == (kind, kind, 3.0)


def test_compiled_and_jitted_functions_can_be_called_and_compiled():
    @numba.njit
    def cube(x):
        return x**3

    @rg.compile
    def outer(x):
        return cube(x) * weighted(np.array([x, x, x]), 1.0)

    def plain_outer(x):
        return x**3 * plain_weighted(np.array([x, x, x]), 1.0)

    close(outer(0.7), plain_outer(0.7))
    close(rg.gradient(outer, 0.7)[0], differences(plain_outer, 0.7), rtol=1e-8)
    assert rg.gradient(rg.compile(cube), 2.0) == (12.0,)


def test_as_a_decorator_with_options_and_of_a_lambda():
    @rg.compile(fastmath=True)
    def double(x):
        """Twice x."""
        return x * 2.0

    assert type(double) is Compiled
    assert double.__doc__ == "Twice x."
    assert rg.gradient(double, 3.0) == (2.0,)
    assert rg.gradient(rg.compile(lambda x: x * x), 3.0) == (6.0,)


def test_the_source_of_each_program_can_be_read():
    with pytest.raises(InputError, match="types of the arguments are not known"):
        rg.compile(plain_weighted).source()
    with pytest.raises(InputError, match="no program 'adjoint'"):
        weighted.source("adjoint")
    text = weighted.source("pullback", X)
    assert text.startswith("def plain_weighted_pullback(x, w, n, x_bar, y_bar):")
    assert "# test_compiled.py" in text
    assert "s += np.sin(x[i]) * w * squares(x)" in text
    for what in ("primal", "jvp", "hvp"):
        assert weighted.source(what).startswith("def plain_weighted")


def test_compiled_functions_pickle():
    assert pickle.loads(pickle.dumps(fill)) is fill
    again = pickle.loads(pickle.dumps(weighted))
    assert type(again) is Compiled
    assert again.__wrapped__ is plain_weighted


def test_numba_is_imported_when_a_compiled_function_is_called():
    code = (
        "import sys, retrograde\n"
        "from compiler.corpus import sum_of_squares\n"
        "c = retrograde.compile(sum_of_squares)\n"
        "assert 'numba' not in sys.modules\n"
        "sys.modules['numba'] = None\n"
        "import numpy as np\n"
        "try: c(np.ones(2))\n"
        "except retrograde.MissingExtraError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONPATH": ":".join(sys.path)}
    )
    assert "compile needs numba" in done.stdout


def test_a_derivative_in_an_integer_is_refused_and_not_zero():
    square = rg.compile(lambda x: x * x)
    for ask in (
        lambda: rg.grad(square)(3),
        lambda: rg.grad(lambda x: square(x))(3),
        lambda: rg.jvp(square, (3,), (1.0,)),
        lambda: rg.hessian(square)(3),
        lambda: rg.taylor(square, 3, 1.0, 2),
        lambda: rg.grad(lambda x: np.sum(square(x)))(np.array([1, 2])),
    ):
        with pytest.raises(InputError, match="takes integers for data"):
            ask()
    assert rg.grad(square)(3.0) == 6.0


@pytest.mark.usefixtures("as_plain_python")
def test_results_that_are_only_integers_stand_inside_of_any_transform():
    c = rg.compile(lambda x: int(x[0]) + len(x), cache=False)
    x = np.array([2.0, 3.0])
    close(rg.gradient(lambda x: c(x) * np.sum(x), x)[0], np.array([4.0, 4.0]))
    close(rg.jvp(lambda x: c(x) * x[0], (x,), (x,))[1], 8.0)
    close(rg.hessian(lambda x: c(x) * x[0] ** 2, x), np.diag([8.0, 0.0]))
    close(rg.vmap(rg.grad(lambda x: c(x) * np.sum(x)))(np.stack([x, x + 1])), np.array([[4.0, 4.0], [5.0, 5.0]]))


def turned(p, n):
    for _ in range(n):
        p = np.sin(p) * p
    return p


@pytest.mark.usefixtures("as_plain_python")
def test_the_ways_out_for_a_count_are_named_and_lead_out():
    c = rg.compile(turned, cache=False)
    total = rg.compile(lambda p, n: np.sum(turned(p, n)), cache=False)
    p = np.array([1.0, 2.0])
    want = rg.jacobian(lambda p: turned(p, 3), p)
    fact = "turned is compiled and takes integers for data; its argument n is 3 and to be differentiated"
    for ask in (
        lambda: rg.jacobian(c, p, 3),
        lambda: rg.jacobian(c, p, np.int32(3)),
        lambda: rg.pullback(c, p, 3),
        lambda: rg.jvp(c, (p, 3), (p, 0)),
        lambda: rg.linearize(c, p, 3),
        lambda: rg.gradient(lambda p, n: np.sum(c(p, n)), p, 3),
    ):
        with pytest.raises(InputError, match=fact) as caught:
            ask()
        assert "1. n=3 as a keyword argument, or lambda …: turned(…, 3)" in str(caught.value)
        assert "3. 3.0 for 3" in str(caught.value)
    with pytest.raises(InputError, match="its argument n is 3 and"):
        rg.grad(total, (0, 1))(p, 3)
    for got in (
        rg.jacobian(c, p, n=3),
        rg.jacobian(lambda p: c(p, 3), p),
        rg.jacobian(c, p, 3, argnums=0),
        np.stack([rg.pullback(c, p, n=3)[1](row)[0] for row in np.eye(2)]),
        np.transpose([rg.jvp(c, (p,), (column,), n=3)[1] for column in np.eye(2)]),
        np.stack([rg.grad(lambda p, k=k: c(p, 3)[k])(p) for k in range(2)]),
    ):
        close(got, want)
    close(rg.grad(total, 0)(p, 3), np.sum(want, axis=0))
    close(rg.hessian(total, p, 3, argnums=0), rg.hessian(lambda p: np.sum(turned(p, 3)), p))


def softened(x):
    total = 0.0
    for i in range(x.size):
        total += np.exp(np.tanh(x[i])) * x[i] ** 1.5
    return total


def test_functions_that_a_loop_can_vectorise_are_used_where_they_are_wanted():
    x = np.linspace(0.1, 2, 700)
    fast, exact = rg.compile(softened), rg.compile(softened, vectormath=False)
    np.testing.assert_allclose(rg.grad(fast)(x), rg.grad(exact)(x), rtol=1e-14)
    assert fast(x) == exact(x)
    assert "vectormath.exp(" in fast.source("pullback")
    assert "vectormath" not in exact.source("pullback")


def largest_weighted(x, w):
    best = -np.inf
    for i in range(x.size):
        best = max(best, x[i] * w)
    return best


def test_the_first_of_equals_has_the_derivative_of_a_search():
    x = np.array([0.5, 2.0, 2.0, 0.7])
    compiled = rg.compile(largest_weighted)
    np.testing.assert_array_equal(rg.gradient(compiled, x, 3.0)[0], [0, 3, 0, 0])
    np.testing.assert_array_equal(rg.gradient(compiled, x, -3.0)[0], [-3, 0, 0, 0])


def test_numba_finds_its_own_numpy_after_it_was_first_used_inside_of_a_transform(tmp_path):
    program = tmp_path / "first_use.py"
    program.write_text(
        "import numba, numpy as np, retrograde as rg\n"
        "def f(x):\n"
        "    return np.sum(x * x)\n"
        "compiled = rg.compile(f, cache=False)\n"
        "x = np.ones(3)\n"
        "rg.jvp(rg.grad(lambda x: compiled(x)), (x,), (x,))\n"
        "print(numba.njit(lambda x: np.zeros((2, 2)).sum() + x[0])(x))\n"
    )
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "1.0", done.stderr


@pytest.mark.parametrize(
    ("options", "use"),
    [
        ("parallel=True", "rg.pullback(lambda x: compiled(x), x)"),
        ("checkpoint=True", "rg.gradient(lambda x: compiled.explain(x) and x[0], x)"),
        ("parallel=True", "rg.gradient(lambda x: compiled.source('hvp', np.ones(3)) and x[0], x)"),
    ],
)
def test_a_first_use_inside_of_a_transform_finds_the_functions_of_math(tmp_path, options, use):
    program = tmp_path / "first_use.py"
    program.write_text(
        "import math, numpy as np, retrograde as rg\n"
        "def f(x):\n"
        "    s = 0.0\n"
        "    for i in range(x.size):\n"
        "        s += math.cos(x[i])\n"
        "    return s\n"
        f"compiled = rg.compile(f, cache=False, {options})\n"
        "x = np.ones(3)\n"
        f"{use}\n"
        "print(rg.gradient(compiled, np.zeros(1)))\n"
    )
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "(array([-0.]),)", done.stderr


def test_a_value_that_numba_has_no_code_for_is_that_of_the_compilers_own_program():
    def ranked(x, out):
        out[:] = np.cumsum(np.sort(x, axis=0), axis=1)
        return np.einsum("ij->j", out)

    compiled = rg.compile(ranked, cache=False)
    x, out, wanted = np.array([[3.0, 1.0], [2.0, 4.0]]), np.zeros((2, 2)), np.zeros((2, 2))
    np.testing.assert_array_equal(compiled(x, out), ranked(x, wanted))
    np.testing.assert_array_equal(out, wanted)


def test_an_assertion_of_numbas_own_is_no_exception_of_the_function():
    def chosen(x):
        return np.sum(x[x > 0.5]) * x[0, 0]  # numba takes masks of one axis only

    compiled = rg.compile(chosen, cache=False)
    x = np.array([[1.0, 0.25], [2.0, 0.5]])
    with pytest.raises(AssertionError):
        numba.njit(chosen)(x)
    assert compiled(x) == 3.0
    close(rg.gradient(compiled, x)[0], np.array([[4.0, 0.0], [1.0, 0.0]]))

    def asserts(x):
        assert x[0] > 0
        return x[0]

    with pytest.raises(AssertionError):
        rg.compile(asserts, cache=False)(-np.ones(1))


def divides(x, n):
    return x[1 // n] * 2.0


def counts_modulo(x, n):
    s = 0.0
    for i in range(3):
        s += x[i % n] ** 2
    return s


def steps(x, n):
    s = 0.0
    for i in range(3, -1, n):
        s += x[i - 3] ** 2
    return s


@pytest.mark.parametrize(
    ("function", "n", "kind"),
    [(divides, 1, ZeroDivisionError), (counts_modulo, 2, ZeroDivisionError), (steps, -4, ValueError)],
)
def test_integers_that_may_not_be_zero_raise_in_derivatives_as_in_the_value(function, n, kind):
    compiled = rg.compile(function)
    x = np.array([0.5, 1.5])
    np.testing.assert_allclose(rg.gradient(compiled, x, n)[0], rg.gradient(function, x, n)[0])
    with pytest.raises(kind):
        compiled(x, 0)
    with pytest.raises(kind):
        rg.gradient(compiled, x, 0)
    with pytest.raises(kind):
        rg.jvp(lambda x: compiled(x, 0), (x,), (x,))


def solved_for_a_text(a):
    return np.linalg.solve(a, "b")


def two_dtypes(x):
    y = x
    if x[0] > 0.0:
        y = x.astype(np.float32)
    return y


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (
            solved_for_a_text,
            r"No implementation of function solve found for signature: solve\(array\(float64, 2d, C\), .*\): "
            r"np.linalg.solve\(\) only supported for array types \(line \d+ of test_compiled.py\)",
        ),
        (
            two_dtypes,
            r"Cannot unify array\(float64, 2d, C\) and array\(float32, 2d, C\) for y \(line \d+ of test_compiled.py\)",
        ),
    ],
)
def test_an_error_of_numbas_is_told_by_its_reason_and_the_users_line(function, says):
    with pytest.raises(numba.core.errors.TypingError) as caught:
        numba.njit(function)(np.eye(2))
    text = str(native.explained(caught.value, function.__name__))
    assert re.search(f"numba cannot compile {function.__name__}: {says}", text)


# --- Jacobians of the function itself ---------------------------------------------------------------------------


def plain_curve(x, n, w, scale=2.0):
    y = np.zeros((len(x), 2))
    for i in range(len(x)):
        for k in range(n):
            y[i, k % 2] += np.sin(x[i] * x[i - 1]) * w * (k + 1) * scale
    return y


curve = rg.compile(plain_curve)


def noted_runs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    ran: list[tuple[str, int]] = []
    evaluate = Specialisation.evaluate

    def noted(self: Any, kind: str, order: int, *args: Any, **kwargs: Any) -> Any:
        ran.append((kind, order))
        return evaluate(self, kind, order, *args, **kwargs)

    monkeypatch.setattr(Specialisation, "evaluate", noted)
    return ran


@pytest.mark.parametrize("chunk", [None, 2])
def test_a_forward_jacobian_of_the_function_itself_is_one_native_loop(chunk, monkeypatch):
    ran = noted_runs(monkeypatch)
    y, found = rg.withjacobian(curve, X, 3, 0.7, argnums=0, mode="forward", chunk=chunk)
    assert ran == [("J", 1)] * (1 if chunk is None else 2)
    close(y, plain_curve(X, 3, 0.7))
    close(found, differences(lambda x: plain_curve(x, 3, 0.7), X), rtol=1e-6, atol=1e-7)
    several = rg.jacobian(curve, X, 3, 0.7, argnums=(2, 0), mode="forward", scale=1.5)
    close(several[1], found * 0.75)
    close(several[0], plain_curve(X, 3, 1.0, 1.5))


def test_forward_jacobians_that_native_code_does_not_know_are_traced():
    square = rg.compile(lambda x, k: (x * x, x * k), cache=False)
    first, second = rg.jacobian(square, X, 2.0, argnums=0, mode="forward")
    close(first, np.diag(2 * X))
    close(second, 2 * np.eye(3))
    inner = rg.jacobian(lambda x: rg.jacobian(curve, x, 3, 0.7, argnums=0, mode="forward").sum(), X)
    close(inner, differences(lambda x: rg.jacobian(curve, x, 3, 0.7, argnums=0).sum(), X), rtol=1e-5, atol=1e-6)


def test_a_forward_jacobian_of_a_number_in_a_number():
    cube = rg.compile(lambda x: x**3, cache=False)
    assert rg.jacobian(cube, 2.0, mode="forward") == 12.0
    assert rg.withjacobian(cube, 2.0, mode="forward").val == 8.0


def test_an_array_that_is_written_with_what_it_holds_is_as_it_was():
    def touched(x, w):
        w[0] = w[0]
        return np.sum(x * w)

    compiled = rg.compile(touched, cache=False)

    def loss(x, w):
        w = np.copy(w)
        return compiled(x * 1.0, w) + np.sum(w**2)

    close(rg.gradient(loss, X, X + 1)[1], X + 2 * (X + 1))
    close(rg.jvp(loss, (X, X + 1), (X, X))[1], np.sum(X * (X + 1) + X * X + 2 * (X + 1) * X))


def test_what_no_path_leads_to_from_what_is_differentiated_is_plain():
    def parts(x, w):
        w[0] = w[1] * 2
        return x * w, w * 2, w[2] * 3

    compiled = rg.compile(parts, cache=False)
    x, w = np.array([1.0, 2.0, 3.0]), np.array([2.0, 0.5, 4.0])

    def loss(x, w=w):
        plain_w, kept = w.copy(), np.zeros(3)
        product, twice, number = compiled(x, plain_w)
        kept[:2], kept[2] = twice[:2], number  # neither is traced
        return np.sum(product**2 * kept)

    kept, last = np.array([2.0, 1.0, 12.0]), np.array([1.0, 0.5, 4.0])
    close(rg.gradient(loss, x)[0], 2 * x * last**2 * kept)
    close(np.array(rg.jvp(loss, (x,), (x,))), np.array([1, 2]) * np.sum((x * last) ** 2 * kept))
    assert rg.gradient(lambda x: np.sum(compiled(x, w.copy())[1]), x) == (None,)

    # The same where what they do depend on belongs to a transform outside.
    def outer(w):
        return np.sum(rg.gradient(lambda x: np.sum(compiled(x, np.copy(w))[0]) * compiled(x, np.copy(w))[2], x)[0])

    close(rg.gradient(outer, w)[0], np.array([0.0, 9 * w[2], 3 * (3 * w[1] + 2 * w[2])]))
