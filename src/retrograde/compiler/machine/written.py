"""What is kept of a program that was written as LLVM's text: all that a caller has to know of it.

Code that was found on disk is called without what wrote it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from retrograde.compiler.types import Type


class Called(NamedTuple):
    """An operation that numba has the code of.

    Attributes:
        symbol: its name in the text.
        fn: its name in the table ops.py.
        args: the dtype of each argument.
        result: the dtype of its result.
    """

    symbol: str
    fn: str
    args: tuple[str, ...]
    result: str


class Kernel(NamedTuple):
    """A program as LLVM's text.

    Attributes:
        symbol: of the function. It takes each array as a pointer, its lengths and its strides, then numbers as they
            are, for each result a pointer to where it goes, and one to a number that it changes to 1 where it sees a
            NaN (see `looked_at`); it gives the number of an error, or 0.
        text: all functions of it.
        params, results: their types.
        errors: what each number means, from 1.
        called: the operations that numba has the code of.
        dense: the positions of the array parameters that have to be dense.
        has_threads: whether it runs loops on numba's threads.
        looked_at: the positions of the array parameters of which it looks for a NaN in all that it writes into them,
            while it has it at hand.
    """

    symbol: str
    text: str
    params: tuple[Type, ...]
    results: tuple[Type, ...]
    errors: tuple[tuple[str, str], ...]
    called: tuple[Called, ...]
    dense: frozenset[int]
    has_threads: bool = False
    looked_at: frozenset[int] = frozenset()


def strides_of(number: int) -> str:
    """The place in the text where the strides of an array parameter are computed, given or known."""
    return f"  ; strides of %p{number}"


def with_strides(kernel: Kernel, layouts: tuple[str, ...]) -> Kernel:
    """The text for arrays of which those with the layout "C" are dense, as LLVM is to know."""
    text = kernel.text
    for k, (type, layout) in enumerate(zip(kernel.params, layouts, strict=True)):
        if not type.is_array:
            continue
        lines = [f"  %p{k}.s{i} = add i64 %p{k}.g{i}, 0" for i in range(type.ndim)]
        if layout == "C":
            size = np.dtype(type.dtype).itemsize
            lines = []
            for i in reversed(range(type.ndim)):
                product = f"mul i64 %p{k}.s{i + 1}, %p{k}.d{i + 1}" if lines else f"add i64 {size}, 0"
                lines.append(f"  %p{k}.s{i} = {product}")
        text = text.replace(strides_of(k) + "\n", "".join(f"{line}\n" for line in lines))
    symbol = f"{kernel.symbol}.{''.join(layouts)}"
    return kernel._replace(symbol=symbol, text=text.replace(f'@"{kernel.symbol}"', f'@"{symbol}"'))
