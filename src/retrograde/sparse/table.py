"""The one place that says to which family each function belongs.

Elementwise functions are not here (level.py reads their partials), nor those that are composed of others.
"""

from __future__ import annotations

import functools
from typing import Any

from numpy import take  # (ours is a stand-in, see trace/stand_ins.py)
from numpy.lib.stride_tricks import sliding_window_view

from retrograde.originals import np
from retrograde.rules.numpy_differences import steps, steps_back
from retrograde.rules.numpy_indexing import getitem, placed, scatter
from retrograde.rules.numpy_polynomials import characteristic
from retrograde.rules.numpy_sets import picked
from retrograde.rules.numpy_shape import fold_windows
from retrograde.rules.numpy_shares import shares
from retrograde.rules.numpy_spectral import svd
from retrograde.rules.table import General, WithArguments
from retrograde.sparse import families as of
from retrograde.sparse import products
from retrograde.sparse.declared import declared
from retrograde.sparse.families import Family
from retrograde.trace.creation import stacked
from retrograde.trace.sparse_matrices import by_columns, by_rows

# Nothing is in these patterns that is not in the function.
EXACT: dict[Any, Family] = {
    # Elements in other places.
    **dict.fromkeys((np.reshape, np.ravel, np.expand_dims, np.squeeze, np.copy), of.moved),
    **dict.fromkeys((np.transpose, np.matrix_transpose, np.linalg.matrix_transpose), of.moved),
    **dict.fromkeys((np.swapaxes, np.moveaxis, np.flip, np.fliplr, np.flipud, np.rot90, np.roll), of.moved),
    **dict.fromkeys((np.broadcast_to, np.repeat, np.tile, np.resize, sliding_window_view), of.moved),
    **dict.fromkeys((np.concatenate, np.stack, np.hstack, np.vstack, np.dstack, np.column_stack, stacked), of.moved),
    **dict.fromkeys((np.array_split, np.split, np.hsplit, np.vsplit, np.dsplit, np.unstack), of.moved),
    **dict.fromkeys((getitem, placed, take, np.take_along_axis), of.moved),
    **dict.fromkeys((np.tril, np.triu, np.diag, np.diagflat, np.diagonal), of.moved),
    **dict.fromkeys((np.fft.fftshift, np.fft.ifftshift), of.moved),
    **dict.fromkeys((np.where, np.choose), of.chosen),
    np.sort: of.ordered,
    picked: of.picked,
    # Elements in their own places.
    **dict.fromkeys((np.conjugate, np.real, np.astype, np.nan_to_num, np.unwrap, np.frexp), of.same),
    np.imag: of.imaginary,
    np.sign: of.signs,
    **dict.fromkeys((np.round, np.around), of.none),
    # Sums and products of what lies along axes.
    **dict.fromkeys((np.sum, np.add.reduce, np.mean, np.prod, np.multiply.reduce), of.along()),
    **dict.fromkeys((np.var, np.std, np.logaddexp.reduce), of.along()),
    **dict.fromkeys((np.max, np.min, np.amax, np.amin, np.nanmax, np.nanmin), of.extreme),
    **dict.fromkeys((np.maximum.reduce, np.minimum.reduce, np.fmax.reduce, np.fmin.reduce), of.extreme),
    **dict.fromkeys((np.trace, np.linalg.trace), of.traced_diagonal),
    **dict.fromkeys((np.cumsum, np.add.accumulate, np.cumulative_sum), of.scanned),
    **dict.fromkeys((np.cumprod, np.multiply.accumulate, np.logaddexp.accumulate), of.scanned),
    **dict.fromkeys(of.RECORDS, of.scanned),
    **dict.fromkeys((np.add.reduceat, np.multiply.reduceat), of.segments),
    steps: of.neighbours,
    steps_back: of.neighbours_back,
    np.bincount: of.counted,
    scatter: of.scattered,
    fold_windows: of.folded,
    # Sums of products.
    **dict.fromkeys((np.matmul, np.linalg.matmul), products.matmul),
    **dict.fromkeys((np.vecdot, np.linalg.vecdot), products.vecdot),
    **dict.fromkeys((np.tensordot, np.linalg.tensordot), products.tensordot),
    **dict.fromkeys((np.outer, np.linalg.outer), products.outer),
    np.matvec: products.matvec,
    np.vecmat: products.vecmat,
    np.dot: products.dot,
    np.inner: products.inner,
    np.vdot: products.vdot,
    np.multiply.outer: products.every_pair,
    np.kron: products.kron,
    np.einsum: products.einsum,
    by_rows: products.by_rows,
    by_columns: products.by_columns,
    np.convolve: products.convolve,
    np.correlate: products.correlate,
    # Lines and matrices in which everything depends on everything.
    **dict.fromkeys((np.fft.fft, np.fft.ifft, np.fft.rfft, shares), of.spread),
    np.linalg.solve: of.solved,
    np.linalg.inv: of.core((2,), (2,)),
    np.linalg.det: of.core((2,), (0,)),
}

# Patterns that may be too large, never too small.
DENSE: dict[Any, Family] = {
    np.partition: of.spread,
    **dict.fromkeys((np.median, np.nanmedian, np.quantile, np.nanquantile), of.statistic),
    **dict.fromkeys((np.percentile, np.nanpercentile), of.statistic),
    **dict.fromkeys((np.linspace, np.geomspace), of.between),
    **dict.fromkeys((np.cross, np.linalg.cross), products.cross),
    **dict.fromkeys((np.linalg.norm, np.linalg.vector_norm), of.along()),
    np.linalg.matrix_norm: of.along((-2, -1)),
    # A line of fewer numbers stands for one that is its own mirror image; one triangle for a symmetric matrix.
    np.fft.irfft: of.spread,
    np.linalg.pinv: of.core((2,), (2,)),
    np.linalg.eig: of.core((2,), (1, 2)),
    np.linalg.eigvals: of.core((2,), (1,)),
    np.linalg.eigh: of.core((2,), (1, 2)),
    svd: of.core((2,), (2, 1, 2)),
    np.linalg.cholesky: of.core((2,), (2,)),
    np.linalg.slogdet: of.core((2,), (0, 0)),
    np.linalg.qr: of.factored,
    **dict.fromkeys((np.linalg.lstsq, np.roots, characteristic), of.dense),
}

# SciPy's functions, which are not imported here: by label, and the others are elementwise.
SCIPY: dict[str, Family] = {
    "scipy.special.softmax": of.spread,
    "scipy.special.log_softmax": of.spread,
    "scipy.special.logsumexp": of.along(),
}


def family_of(rule: WithArguments) -> Family:
    """How the function of a rule carries dependence; `dense` where nobody has said it."""
    if isinstance(rule, General) and rule.sparsity is not None:
        return functools.partial(declared, sparsity=rule.sparsity)
    family = EXACT.get(rule.function) or DENSE.get(rule.function)
    if family is None and isinstance(rule, General) and ".rules.scipy_special_" in rule.pullback.__module__:
        family = SCIPY.get(rule.label, of.aligned)
    return family or of.dense
