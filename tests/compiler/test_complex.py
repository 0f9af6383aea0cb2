"""Compiled functions of complex numbers under the transforms, against the eager engine on the same source."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from compiler.harness import specialised
from truth import close

import retrograde as rg
from retrograde import ScalarError, compile, gradient, hessian, hvp, jacobian, jvp, pullback, vmap
from retrograde.compiler.bridge import Bridge
from retrograde.errors import LanguageError

Z = np.array([0.3 + 1j, 1 - 0.5j, 0.7 + 0.1j])
X = np.array([0.3, 0.8, 1.2])
V = np.array([0.1 + 0.2j, -0.4j, 0.5 + 0j])
U = np.array([0.3, -0.1, 0.2])


def holomorphic(z):
    out = np.zeros(3, np.complex128)
    for i in range(3):
        out[i] = z[i] ** 2 * z[(i + 1) % 3] + np.exp(z[i])
    return out


def of_real_numbers(x):
    return np.exp(1j * x) * np.sum(x)


def lengths(z):
    s = 0.0
    for i in range(3):
        s += abs(z[i]) ** 2 * z[i].real
    return s


def signal(x):
    s = 0j
    for k in range(3):
        s += x[k] * np.exp(1j * k * x[0])
    return s.real**2 + s.imag


def of_both(z, x):
    return z * x[0] + np.conj(z) * 1j * x[1]


TRANSFORMS: dict[str, tuple[Any, Any]] = {
    "the gradient of a real function": (lengths, lambda f: gradient(f, Z)),
    "the gradient at zero": (lengths, lambda f: gradient(f, np.array([0j, 1j, 2]))),
    "the gradient in real numbers": (signal, lambda f: gradient(f, X)),
    "a pullback": (holomorphic, lambda f: pullback(f, Z)[1](V)),
    "a pullback of a real seed": (holomorphic, lambda f: pullback(f, Z)[1](np.ones(3))),
    "a pushforward": (holomorphic, lambda f: jvp(f, (Z,), (V,))),
    "a pushforward along a real direction": (holomorphic, lambda f: jvp(f, (Z,), (U,))),
    "a pushforward of a real function": (lengths, lambda f: jvp(f, (Z,), (V,))),
    "a complex Jacobian": (holomorphic, lambda f: (jacobian(f, Z),)),
    "a complex Jacobian by rows": (holomorphic, lambda f: (jacobian(f, Z, mode="reverse"),)),
    "a complex Jacobian by columns": (holomorphic, lambda f: (jacobian(f, Z, mode="forward", holomorphic=True),)),
    "a Jacobian in real numbers": (of_real_numbers, lambda f: (jacobian(f, X),)),
    "a Jacobian in real numbers by rows": (of_real_numbers, lambda f: (jacobian(f, X, mode="reverse"),)),
    "a Hessian in real numbers": (signal, lambda f: (hessian(f, X),)),
    "a product with the Hessian": (lengths, lambda f: (hvp(f, Z, V),)),
    "a product with the Hessian in real numbers": (signal, lambda f: (hvp(f, X, U),)),
    "a batch": (holomorphic, lambda f: (vmap(f)(np.stack([Z, 2 * Z, 1j * Z])),)),
    "a batch of gradients": (lengths, lambda f: (vmap(rg.grad(f))(np.stack([Z, 2 * Z, 1j * Z])),)),
    "a part of a traced function": (
        of_both,
        lambda f: gradient(lambda z, x: abs(f(z, x) * 1j + z) ** 2, 0.3 + 0.4j, X),
    ),
    "a real number for a complex one": (of_both, lambda f: gradient(lambda z, x: abs(f(z, x) * 1j + z) ** 2, 0.3, X)),
    "forward over reverse": (lengths, lambda f: jvp(lambda q: gradient(lambda z: f(z * q), Z)[0], (0.4,), (1.0,))),
    "reverse over reverse": (
        lengths,
        lambda f: gradient(lambda q: np.sum(np.abs(gradient(lambda z: f(z * q), Z)[0])), 0.4),
    ),
    "forward over forward": (holomorphic, lambda f: jvp(lambda z: jvp(f, (z,), (V,))[1], (Z,), (1j * V,))),
    "the third order": (lengths, lambda f: jvp(lambda z: hvp(f, z, V), (Z,), (V,))),
    "a linear operator": (holomorphic, lambda f: (rg.linearize(f, Z)[1](V),)),
}


@pytest.mark.usefixtures("as_plain_python")
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_of_a_compiled_function_are_those_of_the_function(name, monkeypatch):
    function, transform = TRANSFORMS[name]
    compiled = compile(function, cache=False)
    monkeypatch.setattr(compiled, "_primal", lambda _: function)
    with np.errstate(all="ignore"):  # of the numbers of plain Python, which numba knows nothing of
        found = transform(compiled)
    for got, want in zip(found, transform(function), strict=True):
        close(np.asarray(got), want, 1e-11, 1e-12)
        assert np.iscomplexobj(got) == np.iscomplexobj(want)


@pytest.mark.usefixtures("as_plain_python")
def test_a_complex_loss_is_refused_as_by_the_eager_engine():
    def square(z):
        return z * z

    with pytest.raises(ScalarError, match="needs a real scalar"):
        gradient(compile(square), 1j)


def test_the_gradient_of_the_squared_length_is_twice_the_number():
    def squared(z):
        return z.real**2 + z.imag**2

    def by_length(z):
        return abs(z) ** 2

    for f in (squared, by_length):
        (bar,) = Bridge(specialised(f, (1 + 2j,))).t([1 + 2j], [1.0], ())
        close(complex(bar), 2 + 4j)


def test_the_second_derivative_of_a_length_at_zero_is_not_lost():
    def by_length(z):
        return abs(z) ** 2

    bridge = Bridge(specialised(by_length, (0j,)))
    with np.errstate(all="ignore"):
        (bar,) = bridge.t([0j], [1.0], ())
        (bar_dot,) = bridge.t([0j], [1.0], ([1 + 0j],))
    assert bar == 0
    assert not np.isfinite(bar_dot)


def test_what_a_choice_discards_has_no_derivative_though_its_slope_is_infinite():
    def chosen(z):
        return np.sum(np.abs(np.where(z != 0, np.sqrt(z), 1j)))

    z = np.array([1j, 0, 2 + 0j])
    with np.errstate(all="ignore"):
        (bar,) = Bridge(specialised(chosen, (z,))).t([z], [1.0], ())
    (want,) = gradient(chosen, z)
    close(bar, want)
    assert bar[1] == 0


def test_a_part_of_a_complex_array_is_copied_when_it_gets_a_name():
    def parts(z):
        x, y = z.real, z.imag
        return np.sum(x * y)

    (bar,) = Bridge(specialised(parts, (Z,))).t([Z], [1.0], ())
    close(bar, Z.imag + 1j * Z.real)


# --- through numba -------------------------------------------------------------------------------------------------


def made_of_parts(x):
    n = len(x)
    z = np.zeros(n, dtype=complex)
    w = np.ones(n, complex) * np.eye(n, dtype=np.complex128)[0]
    for i in range(n):
        z[i] = x[i] / (w[i] * (1 + 1j) + 1e-3)
    return np.sum(np.abs(z)), z


def test_a_compiled_function_with_complex_arrays_is_called_and_differentiated_by_numba():
    pytest.importorskip("numba")
    compiled = compile(made_of_parts, cache=False)
    for got, want in zip(compiled(X), made_of_parts(X), strict=True):
        close(np.asarray(got), want, 1e-14)
    back = pullback(compiled, X)[1]
    close(back((1.0, V))[0], pullback(made_of_parts, X)[1]((1.0, V))[0])


def test_a_complex_division_by_zero_is_infinite_in_derivatives():
    pytest.importorskip("numba")

    def divided(z, w):
        return (z / w).real

    of = specialised(divided, (1j, 0j), plain=False)
    (dot,) = Bridge(of).j([1j, 0j], ([1 + 0j, 0j],))
    assert not np.isfinite(dot)


def views_of_parts(z):
    a = z.real[1:] * 2
    b = np.reshape(z.imag, (2, 2)).T
    c = np.diag(np.broadcast_to(z.real, (4, 4)))
    d = np.expand_dims(z.imag, 0)[0, ::-1]
    return np.sum(a) + np.sum(b[0] * c[:2]) + np.sum(d * np.arange(4.0)) + z.real[1] * z.imag[None, :][0, 2]


def test_views_of_the_parts_of_a_complex_array_are_the_parts_of_its_views():
    compiled = compile(views_of_parts, cache=False)
    z = np.array([1.0 + 2j, -1 + 0.5j, 0.25 - 3j, 2.0 + 1j])
    np.testing.assert_allclose(compiled(z), views_of_parts(z))
    np.testing.assert_allclose(gradient(lambda z: compiled(z), z)[0], gradient(views_of_parts, z)[0])


@pytest.mark.parametrize(
    "view",
    [
        lambda z: z.real[1:],
        lambda z: z.imag[None, :],
        lambda z: np.reshape(z.real, (2, 2)),
        lambda z: z.real.T,
        lambda z: np.broadcast_to(z.real, (2, 4)),
    ],
)
def test_a_write_behind_a_view_of_a_part_is_refused(view):
    def f(z):
        seen = view(z)
        z[2] = 5.0
        return np.sum(seen)

    compiled = compile(f, cache=False)
    with pytest.raises(LanguageError, match="parts of a complex array"):
        gradient(lambda x: compiled(x * (1 + 1j)), np.ones(4))


def overwrites(z):
    z[0] = 7.0
    return 1.0


def product_of_parts(part, factor):
    return np.sum(part) * factor


def among_arguments(z):
    return product_of_parts(z.real, overwrites(z))


def looped_over(z):
    total = 0.0
    for part in z.imag:
        total += part
        z[1] = 5j
    return total


def unpacked(z):
    a, b = z.real, z.imag
    z[1] = 3 + 4j
    return np.sum(a * b)


def a_default(z):
    def summed(a=z.real):
        return np.sum(a)

    z[1] = 3 + 4j
    return summed()


def a_choice(z):
    a = z.real if z[0].real > 0 else z.imag
    z[1] = 3 + 4j
    return np.sum(a)


@pytest.mark.parametrize("f", [among_arguments, looped_over, unpacked, a_default, a_choice])
def test_a_part_that_has_a_name_and_is_written_behind_is_refused(f):
    compiled = compile(f, cache=False)
    with pytest.raises(LanguageError, match="parts of a complex array"):
        gradient(lambda x: compiled(x * (1 + 1j)), np.ones(3))


def test_parts_beside_calls_are_views_as_results():
    def parts(z):
        return z.real, z.conj(), z.imag if z[0].real > 0 else z.real

    def loss(g):
        def f(x):
            z = x * (2 + 1j)
            a, b, c = g(z)
            z[1] = x[0] * (3 - 1j)
            return np.sum(a**2) + np.sum(np.imag(b)) + np.sum(c**3)

        return f

    x = np.array([0.5, 1.5, -1.0])
    compiled = compile(parts, cache=False)
    np.testing.assert_allclose(gradient(loss(compiled), x)[0], gradient(loss(parts), x)[0])
