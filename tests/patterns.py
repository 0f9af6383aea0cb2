"""What tests of patterns share: patterns as matrices of booleans, found and measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from retrograde import jvp
from retrograde.sparse.detect import detect


def pattern(f: Callable[..., Any], *args: Any, exact: bool = True) -> Any:
    """The pattern that is found: one row an element of the result, one column an element of the arguments."""
    n = sum(np.size(x) for x in args)
    _, (indptr, indices) = detect(f, args, {}, n, exact)
    found = np.zeros((len(indptr) - 1, n), bool)
    found[np.repeat(np.arange(len(found)), np.diff(indptr)), indices] = True
    assert found.sum() == len(indices), "an entry is there twice"
    return found


def nonzero(f: Callable[..., Any], *args: Any) -> Any:
    """Where the Jacobian at these arguments is not zero, by forward mode; rounding does not count."""
    columns = []
    for k, x in enumerate(args):
        for j in range(np.size(x)):
            direction = np.zeros(np.shape(x), np.result_type(x, float))
            direction.flat[j] = 1
            dots = [np.zeros(np.shape(a), np.result_type(a, float))[()] for a in args]
            dots[k] = direction[()]
            column = _numbers(jvp(f, args, tuple(dots))[1])
            if np.iscomplexobj(x):
                dots[k] = 1j * direction[()]
                column = np.abs(column) + np.abs(_numbers(jvp(f, args, tuple(dots))[1]))
            columns.append(column)
    J = np.abs(np.stack(columns, axis=1)) if columns else np.zeros((np.size(f(*args)), 0))
    return ~(1e-13 * np.max(J, initial=0, where=np.isfinite(J)) >= J)


def _numbers(tree: Any) -> Any:
    leaves = tree if isinstance(tree, tuple | list) else [tree]
    return np.concatenate([np.ravel(leaf) for leaf in leaves if leaf is not None])
