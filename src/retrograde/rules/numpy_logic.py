"""Comparisons, logic, bits, tests and text: outputs that are truth values, integers or strings."""

from __future__ import annotations

from retrograde.originals import np
from retrograde.rules.table import no_gradient

no_gradient(
    np.equal,
    np.not_equal,
    np.less,
    np.less_equal,
    np.greater,
    np.greater_equal,
    np.isclose,
    np.allclose,
    np.array_equal,
    np.array_equiv,
    why="a comparison gives truth values",
)
no_gradient(
    np.logical_and,
    np.logical_or,
    np.logical_xor,
    np.logical_not,
    why="logic gives truth values",
)
no_gradient(
    np.isfinite,
    np.isinf,
    np.isnan,
    np.isnat,
    np.isneginf,
    np.isposinf,
    np.signbit,
    np.isreal,
    np.iscomplex,
    why="a test gives truth values",
)
no_gradient(np.isrealobj, np.iscomplexobj, why="it looks at the dtype of its argument", reads=False)
no_gradient(np.may_share_memory, np.shares_memory, why="it asks about memory", reads=False)
no_gradient(np.array2string, np.array_repr, np.array_str, why="it makes text", reads=False)
no_gradient(
    np.bitwise_and,
    np.bitwise_or,
    np.bitwise_xor,
    np.bitwise_count,
    np.invert,
    np.left_shift,
    np.right_shift,
    np.gcd,
    np.lcm,
    why="it takes and gives integers",
)
