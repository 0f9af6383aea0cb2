"""Functions of complex numbers that are not holomorphic, and what they are of real ones.

Holomorphic functions stand with their subjects: an elementwise partial serves the complex plane as it is.
"""

from __future__ import annotations

from typing import Any

from retrograde.originals import np
from retrograde.rules.lengths import over_length
from retrograde.rules.points import call, complex_, real
from retrograde.rules.products import conj, times
from retrograde.rules.table import applied, composed, elementwise, general, linear


def conjugate_adjoint(y_bar: Any, x: Any) -> Any:
    return conj(y_bar)


def real_adjoint(y_bar: Any, val: Any) -> Any:
    return y_bar


def imag_adjoint(y_bar: Any, val: Any) -> Any:
    """Re⟨ȳ, Im ẋ⟩ = Re⟨iȳ, ẋ⟩; the imaginary part of a real number is zero."""
    return 1j * y_bar if val.dtype.kind == "c" else np.zeros(val.shape)


EITHER_FIELD = [call(complex_(-1, 1, 2, 3)), call(complex_(-1, 1)), call(real(-1, 1, 3))]

linear(np.conjugate, conjugate_adjoint, at=EITHER_FIELD)
linear(np.real, real_adjoint, at=EITHER_FIELD)
linear(np.imag, imag_adjoint, at=EITHER_FIELD)


# --- z = |z| · sign z ----------------------------------------------------------------------------------

AWAY_FROM_ZERO = [call(real(0.5, 2)), call(real(-2, -0.5, 2, 3)), call(complex_(0.3, 2)), call(complex_(0.3, 2, 2, 3))]


# A real function of a complex number is not holomorphic, but its derivative is ẋ ↦ Re(partial · ẋ) all the same, and
# the adjoint of that ȳ ↦ conj(partial) · ȳ: the real part that a real result imposes on its tangent is all it takes.
def _times_phase(bar: Any, x: Any) -> Any:
    """`bar * conj(x) / |x|`, of which a derivative at zero is not lost for complex x; of a real one it is zero."""
    return over_length(bar, conj(x), np.absolute(x)) if np.iscomplexobj(x) else times(bar, np.sign(x))


elementwise(np.absolute, applied(lambda x: conj(np.sign(x)), _times_phase, everywhere=False), at=[real(0.5, 2)])
elementwise(np.fabs, lambda x: np.sign(x), at=[real(-2, -0.5)])


def sign_derivative(y: Any, x: Any) -> Any:
    """The derivative of u = z / |z| is v ↦ i·u·Im(ū·v) / |z|: only what turns z turns u. It is its own adjoint.

    The sign of a real number is constant but for its jump.
    """
    if not np.iscomplexobj(x):
        shape = np.shape(x)

        def still(v: Any) -> Any:
            return np.zeros(shape)

        return still

    def turn(v: Any) -> Any:
        radius = np.abs(x)
        unit = np.where(v == 0, 0.0, y)  # zero gives zero, also where u is NaN
        return 1j * unit * np.imag(np.conj(unit) * v) / np.where(radius > 0, radius, 1.0)

    return turn


def sign_pullback(y: Any, x: Any) -> Any:
    turn = sign_derivative(y, x)

    def pull(y_bar: Any) -> Any:
        return (turn(y_bar),)

    return pull


general(np.sign, pullback=sign_pullback, pushforward=sign_derivative, at=AWAY_FROM_ZERO)


def angle_body(z: Any, deg: bool = False) -> Any:
    angle = np.arctan2(np.imag(z), np.real(z))
    return np.rad2deg(angle) if deg else angle


composed(np.angle, angle_body, at=[*AWAY_FROM_ZERO, call(complex_(-1, -0.2, 3), deg=True)])


def real_if_close_body(a: Any, tol: float = 100) -> Any:
    """`tol` above 1 counts in machine epsilons of the dtype."""
    if not np.iscomplexobj(a):
        return a if isinstance(a, np.ndarray) else np.asarray(a)  # the array itself, whose memory it shares
    if tol > 1:
        tol = float(np.finfo(a.dtype).eps) * tol
    return np.real(a) if np.all(np.absolute(np.imag(a)) < tol) else a


composed(
    np.real_if_close,
    real_if_close_body,
    at=[
        call(complex_(0.5, 1, 3)),
        call(complex_(-1e-15, 1e-15, 3)),
        call(complex_(-0.2, 0.2, 3), tol=0.5),
        call(real(-1, 1, 3)),
    ],
)
