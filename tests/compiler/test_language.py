"""What is not in the language is refused at its place, before anything runs; numba is not needed for that."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from compiler.harness import specialised

from retrograde import InputError, LanguageError, compile
from retrograde.compiler.variant import Which

REFUSED: list[Any] = []
X = np.array([0.5, 1.5, 2.5])


def refused(fact: str, caret: str, *args: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function that is refused with this fact, with the caret under this text."""

    def register(f: Callable[..., Any]) -> Callable[..., Any]:
        REFUSED.append(pytest.param(f, args, fact, caret, id=f.__name__))
        return f

    return register


@refused("a difference of unsigned integers, which has no sign", "k[0] - k[1]", X, np.array([1, 5], np.uint8))
def difference_without_a_sign(x, k):
    return x[0] * (k[0] - k[1])


@refused("endless calls itself on every path", "endless(x - 1.0)", 2.0)
def endless(x):
    return endless(x - 1.0) * x


@refused("of_types calls itself with arguments of other types than its own", "of_types(x, n, m - 1)", 2.0, 3, 2.0)
def of_types(x, m, n):
    return x if m < 1 else of_types(x, n, m - 1)


def given_back(x, n):
    if n == 0:
        return x
    return given_back(x * 2.0, n - 1)


@refused("given_back calls itself and returns an array that it was given", "given_back(x", X)
def argument_of_recursion_returned(x):
    return given_back(x, 3)


def adds_up(out, x, n):
    for i in range(len(x)):
        out[i] += x[i]
    if n > 0:
        adds_up(out, x, n - 1)


@refused("adds_up calls itself, and writes into an array that is two of its arguments", "adds_up(out, x, n - 1)", X)
def one_array_for_two_of_recursion(x):
    y = x * 1.0
    adds_up(y, y, 2)
    return np.sum(y)


@refused("the function square as an argument of a function that calls itself", "folded(f, x, i + 1)", X)
def function_handed_to_recursion(x):
    def square(v):
        return v * v

    return folded(square, x, 0)


def folded(f, x, i):
    return 0.0 if i == len(x) else f(x[i]) + folded(f, x, i + 1)


@refused("a list comprehension", "[v * v for v in x]", X)
def comprehension(x):
    return np.sum(np.array([v * v for v in x]))


@refused("`with`", "with open", 1.0)
def context_manager(x):
    with open("file"):
        return x


@refused("`try`", "try:", 1.0)
def error_handling(x):
    try:
        return x
    except ValueError:
        return 0.0


@refused("a dictionary", '{"a": x}', 1.0)
def dictionary(x):
    return {"a": x}["a"]


@refused("g calls itself", "g(y - 1.0)", 2.0)
def recursive_inner_function(x):
    def g(y):
        return y if y < 1 else g(y - 1.0)

    return g(x)


@refused("a function defined inside that binds names outside of it", "def g", 1.0)
def inner_function_that_binds(x):
    def g():
        nonlocal x
        x = 2.0

    g()
    return x


@refused("the function g as a result", "return g", 1.0)
def inner_function_as_a_result(x):
    def g():
        return x

    return g


def made_of(a):
    v = a[1:]
    return lambda: v[0]


@refused("g is another name for the array y", "g", X)
def inner_function_of_a_rebound_array(x):
    y = x * 1.0
    s = 0.0
    for _ in range(3):
        g = made_of(y)
        y = y * 2.0
        s += g()
    return s


@refused("a call of the object print", "print(x)", 1.0)
def printing(x):
    print(x)
    return x


@refused("y may be read before it is bound", "y", 1.0)
def unbound(x):
    z = y * x  # noqa: F821
    y = z
    return y


def y_or(x):
    return x


@refused("y is bound to an array in a loop, whose size may change with it", "for i in range(3)", X)
def array_born_in_a_loop_with_a_size_of_its_own(x):
    for i in range(3):
        y = x[i:] * 2.0
    return np.sum(y)


@refused("an array that shares its memory with another one here", "for i in range(3)", X)
def array_born_in_a_loop_that_is_written_by_another_name(x):
    for i in range(3):
        y = x * i
        z = y
    z[0] = 1.0
    return np.sum(y) * z[0]


@refused("y is bound to an array inside a loop or branch and read after it", "y", X)
def array_born_on_one_path(x):
    if x[0] > 0:
        y = x * 2.0
    return np.sum(y)


@refused("y is bound to an array whose size is only known inside of a branch", "if x[0] > 0", X)
def array_of_a_size_of_its_own(x):
    if x[0] > 0:
        y = x[x > 1.0]
    else:
        y = x * 2.0
    return np.sum(y)


@refused("an array that shares its memory with another one here", "if x[0] > 0", X)
def chosen_array_that_is_written(x):
    a = x * 2.0
    if x[0] > 0:
        y = a
    else:
        y = x * 3.0
    y[0] = 1.0
    return np.sum(a) + np.sum(y)


@refused("an array that shares its memory with another one here", "if x[0] > 0", X)
def names_of_one_array_in_a_branch(x):
    if x[0] > 0:
        y = x * 2.0
        z = y
    else:
        y = x * 3.0
        z = x * 4.0
    y[0] = 1.0
    return np.sum(y) + np.sum(z)


@refused("v is another name for the array y, which is bound to another one", "v", X)
def view_of_a_rebound_array(x):
    y = x * 1.0
    s = 0.0
    for _ in range(3):
        v = y[1:]
        y = y * 2.0
        s += v[0]
    return s


@refused("is bound anew in a loop or branch", "for _", X)
def alias_that_is_written(x):
    y = x * 1.0
    z = y
    for _ in range(3):
        y[0] += 1.0
        z = z * y
    return z


@refused("n is bound to a number and to an array", "n", X)
def two_kinds(x):
    n = 0.0
    for i in range(3):
        if i == 2:
            n = x * n
    return n


@refused("results of different structures", "return x, x", 1.0)
def two_results(x):
    if x > 0:
        return x
    return x, x


@refused("an index of type float64", "x[s]", X, 1.0)
def float_index(x, s):
    return x[s]


@refused("the truth of an array", "x > 0", X)
def truth_of_an_array(x):
    if x > 0:
        return 1.0
    return 0.0


@refused("np.mean with the argument where=", "np.mean(x, where=x > 0)", X)
def unknown_argument(x):
    return np.mean(x, where=x > 0)


@refused("the attribute nbytes of an array", "x.nbytes", X)
def unknown_attribute(x):
    return x.nbytes


@refused("a call of np.fft.fft, which compile does not know", "np.fft.fft(x)", X)
def unknown_function(x):
    return np.fft.fft(x)


@refused("a right-hand side of more than two axes", "np.linalg.lstsq(a, b)", np.ones((3, 2)), np.ones((3, 2, 2)))
def least_squares_of_stacks(a, b):
    return np.linalg.lstsq(a, b)[0]


@refused("eigenvalues of a matrix that may not be symmetric", "np.linalg.eig(a)", np.ones((2, 2)))
def complex_eigenvalues(a):
    return np.linalg.eig(a)[0]


@refused("linear algebra with something that is no matrix", "np.linalg.inv(x)", X)
def inverse_of_a_vector(x):
    return np.linalg.inv(x)


@refused("< of complex numbers, which have no order", "z < 1j", 1j)
def order_of_complex_numbers(z):
    return z if z < 1j else 2 * z


@refused("> of complex numbers, which have no order", "np.max(z)", X * 1j)
def largest_complex_number(z):
    return np.max(z)


@refused("< of complex numbers, which have no order", "np.sort(z)", X * 1j)
def sorted_complex_numbers(z):
    return np.sort(z)


@refused("np.maximum of complex numbers, which have no order", "np.maximum(z, 0.0)", X * 1j)
def clipped_complex_numbers(z):
    return np.maximum(z, 0.0)


@refused("a complex number where a float64 is wanted", "float(z)", 1j)
def float_of_complex(z):
    return float(z)


@refused("a complex number where a float64 is wanted", "y[0] = z", X, 1j)
def complex_number_in_an_array_of_floats(x, z):
    y = x.copy()
    y[0] = z
    return y


@refused("a complex number where a int64 is wanted", "int(z)", 1j)
def int_of_complex(z):
    return int(z)


@refused("math.exp of a complex number", "math.exp(z)", 1j)
def math_of_complex(z):
    return math.exp(z)


@refused("// is not defined for complex128", "z // 2", 1j)
def floor_of_complex(z):
    return z // 2


@refused("np.arctan2 is not defined for complex128 and float64", "np.arctan2(z, 1.0)", 1j)
def angle_of_complex(z):
    return np.arctan2(z, 1.0)


@refused("a product of a complex array and one of real numbers", "z @ x", X * 1j, X)
def product_of_two_fields(z, x):
    return z @ x


@refused("an assignment to a part of a complex array", "z.real[0] = 1.0", X * 1j)
def write_into_a_part(z):
    z.real[0] = 1.0
    return z


@refused("an array that shares its memory with another one here", "x = z.real", X * 1j)
def part_of_what_is_written(z):
    z = z.copy()
    x = z.real
    z[0] = 2.0
    return x


@refused("complex as a dtype here", "x.astype(complex)", X)
def complex_as_a_dtype(x):
    return x.astype(complex)


@refused("rows are of different types, complex128 and float64", "[[1.0, 1j], [1.0, 1.0]]", 1.0)
def rows_of_two_fields(x):
    return np.array([[1.0, 1j], [1.0, 1.0]]) * x


@refused("the method conj of a number", "z.conj", 1j)
def conj_of_a_number(z):
    return z.conj()


@refused("a call of np.fft.fft, which compile does not know", "np.fft.fft(z)", X * 1j)
def fourier_transform(z):
    return np.fft.fft(z)


@refused("... in np.einsum", 'np.einsum("...i->i", a)', np.ones((2, 2)))
def unnamed_axes(a):
    return np.einsum("...i->i", a)


@refused("several quantiles at once", "np.quantile(x, np.array([0.2, 0.3]))", X)
def several_quantiles(x):
    return np.quantile(x, np.array([0.2, 0.3]))


@refused("3 indices for an array of 1 axes", "x[0, 0, 0]", X)
def too_many_indices(x):
    return x[0, 0, 0]


@refused("operands could not be broadcast together", "np.ones(2) * np.ones(3)", 1.0)
def shapes_that_differ(x):
    return np.sum(np.ones(2) * np.ones(3)) * x


@refused("the test of a `while` writes into an array", "writes(x) < 5.0", X)
def writing_test(x):
    while writes(x) < 5.0:
        x[1] += 1.0
    return x


def writes(x):
    x[0] += 1.0
    return x[0]


@refused("raising something else than one of Python's own exceptions", "raise", 1.0)
def own_exception(x):
    if x > 5:
        raise LanguageError("no")
    return x


@refused("t is a tuple before a loop or branch", "t", 1.0)
def tuple_in_a_loop(x):
    t = (x, x)
    for _ in range(3):
        t = (t[1], t[0] * x)
    return t[0]


@refused("kind is None before a loop or branch", "kind", 1.0)
def none_that_becomes_a_number(x):
    kind = None
    for _ in range(3):
        kind = x if kind is None else kind * x
    return kind


@refused("an assignment inside an expression", "y := x", 1.0)
def walrus(x):
    return (y := x) * y


@refused("not_there is not defined", "not_there", 1.0)
def undefined(x):
    return x * not_there  # noqa: F821


@pytest.mark.parametrize(("function", "args", "fact", "caret"), REFUSED)
def test_what_is_not_in_the_language_is_refused_at_its_place(function, args, fact, caret):
    with pytest.raises(LanguageError) as caught:
        specialised(function, args)
    error = caught.value
    lines = str(error).splitlines()
    assert fact in lines[0]
    assert f"test_language.py:{error.line}:{error.column + 1}" in lines[0]
    under = lines[2].index("^")
    assert lines[1][under:].startswith(caret)


def test_the_refusal_of_a_called_function_is_at_its_own_line():
    def outer(x):
        return context_manager(x) + 1.0

    with pytest.raises(LanguageError, match="with open"):
        specialised(outer, (1.0,))


@pytest.mark.parametrize(
    ("argument", "fact"),
    [
        ([1.0, 2.0], "is a list"),
        ({"a": 1.0}, "is a builtins.dict"),
        (np.array(["a"]), "is an array of dtype <U1"),
        (np.float16(1), "is a float16"),
        (object(), "is a builtins.object"),
    ],
)
def test_arguments_that_compiled_code_does_not_take_are_named(argument, fact):
    with pytest.raises(InputError, match=f"the argument x {fact}"):
        specialised(y_or, (argument,))


def test_compile_takes_functions_only():
    with pytest.raises(InputError, match="compile takes a Python function"):
        compile(np.sin)
    namespace: dict[str, Any] = {}
    exec("def made(x):\n    return x", namespace)
    with pytest.raises(InputError, match="the source of made cannot be read"):
        compile(namespace["made"])


def sometimes_bound(x, n):
    for i in range(n):
        y = x * i
    if n > 5:
        z = y
    return y * z


def test_a_name_that_was_not_bound_on_the_path_taken_raises_pythons_error():
    of = specialised(sometimes_bound, (2.0, 6))
    run = of.native(of.variant(), Which("T", 0))
    assert run(2.0, 6, 1.0) == (100.0, 100.0)
    for n, name in ((0, "y"), (3, "z")):
        with pytest.raises(UnboundLocalError, match=f"'{name}'"):
            run(2.0, n, 1.0)


def born_in_loops(x, n, m):
    for i in range(n):
        y = x * i
    for i in range(m):
        if m > 1:
            y = x + i
        y = y + 1.0
    return np.sum(y)


def test_an_array_that_no_loop_has_bound_is_an_unbound_name():
    x = np.array([0.5, 1.5])
    of = specialised(born_in_loops, (x, 1, 1))
    run = of.native(of.variant(), Which("T", 0))
    for n, m in ((1, 0), (2, 1), (3, 2), (0, 2)):
        x_bar = np.zeros(2)
        run(x, n, m, x_bar, 1.0)
        np.testing.assert_array_equal(x_bar, (n - 1) * np.ones(2) if m < 2 else np.ones(2))
    for n, m in ((0, 0), (0, 1)):
        with pytest.raises(UnboundLocalError, match="'y'"):
            run(x, n, m, np.zeros(2), 1.0)


def diagonal_written(x):
    a = np.outer(x, x)
    d = np.diag(a)
    a[0, 0] = 5.0
    return np.sum(d)


def test_a_diagonal_whose_matrix_is_written_is_refused():
    with pytest.raises(LanguageError, match="shares its memory with another one"):
        specialised(diagonal_written, (X,))
