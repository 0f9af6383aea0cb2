"""SciPy's special functions that are written in Python: what stands for them while a transform runs.

The ufuncs of scipy.special ask a traced value by NumPy's protocol. The functions named here make arrays of their
arguments first, which a traced value refuses. See interception.py for how functions are replaced.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from retrograde.rules import load_scipy
from retrograde.trace.creation import array_of, contains_traced

_NAMES = (
    "logsumexp softmax log_softmax softplus multigammaln polygamma zeta lambertw diric comb perm factorial "
    "assoc_laguerre spherical_jn spherical_yn spherical_in spherical_kn jvp yvp ivp kvp h1vp h2vp "
    "legendre_p legendre_p_all assoc_legendre_p sph_legendre_p sph_harm_y"
)


def replacements(module: Any) -> dict[str, Callable[..., Any]]:
    """The replacements of those functions that this SciPy has, by name; each knows its `original`."""
    return {name: _replacement(name, getattr(module, name)) for name in _NAMES.split() if hasattr(module, name)}


def _replacement(name: str, original: Any) -> Callable[..., Any]:
    @functools.wraps(original)
    def replaced(*args: Any, **kwargs: Any) -> Any:
        if not contains_traced(args) and not contains_traced([*kwargs.values()]):
            return original(*args, **kwargs)
        load_scipy()
        from retrograde.rules.scipy_special_dispatch import named  # imports SciPy

        kwargs = {key: _array_if_traced(value) for key, value in kwargs.items()}
        return named(name)(*map(_array_if_traced, args), **kwargs)

    replaced.original = original  # type: ignore[attr-defined]
    return replaced


def _array_if_traced(arg: Any) -> Any:
    return array_of(arg) if contains_traced(arg) else arg
