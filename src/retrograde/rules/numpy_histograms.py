"""Histograms: numbers of elements have no derivative, sums of weights and the edges of the bins have."""

from __future__ import annotations

import math
from typing import Any

from retrograde.errors import UnsupportedArgumentError
from retrograde.originals import np
from retrograde.rules.contractions import as_array
from retrograde.rules.numpy_indexing import summed_at
from retrograde.rules.points import call, complex_, distinct, real
from retrograde.rules.products import everywhere, somewhere
from retrograde.rules.table import Like, composed, linear


def bincount_adjoint(y_bar: Any, x: Any, weights: Like | None = None, minlength: int = 0) -> Any:
    return np.take(y_bar, x)


linear(
    np.bincount,
    bincount_adjoint,
    args=(1,),
    at=[call([0, 2, 2, 1], real(-1, 1, 4)), call(np.array([1, 1]), weights=real(-1, 1, 2), minlength=5)],
)


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """np.histogram_bin_edges, with the derivatives of edges that the smallest and the largest element decide."""
    return _edges(a, bins, range, as_in_one_dimension=True)


def _edges(a: Any, bins: Any, range: Any, as_in_one_dimension: bool) -> Any:
    """The edges; in one dimension they have the precision of the elements."""
    if isinstance(bins, str):
        raise UnsupportedArgumentError(
            f"np.histogram of a traced value does not choose the bins by {bins!r}",
            f"bins=np.histogram_bin_edges(dropgrad(a), {bins!r})",
        )
    if np.ndim(bins) == 1:
        if somewhere(np.diff(bins) < 0):
            raise ValueError("`bins` must increase monotonically, when an array")
        return bins if hasattr(bins, "shape") else np.asarray(bins)
    low, high = range if range is not None else (np.min(a), np.max(a)) if np.size(a) else (0, 1)
    if not everywhere(np.isfinite(low) & np.isfinite(high) & np.less_equal(low, high)):
        raise ValueError(f"range of [{low}, {high}] is not finite, or not increasing")
    if somewhere(np.equal(low, high)):
        half = np.where(np.equal(low, high), 0.5, 0.0).astype(np.result_type(low, high, 0.5))
        low, high = low - half, high + half
    edges = np.linspace(low, high, bins + 1)
    dtype = np.result_type(low, high, as_array(a))
    return edges.astype(dtype) if as_in_one_dimension and dtype.kind == "f" and dtype != edges.dtype else edges


def histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    edges = histogram_bin_edges(a, bins, range)
    number = edges.shape[0] - 1
    place = _places(np.ravel(a), edges)
    place = np.where((place >= 0) & (place < number), place, number)
    if weights is None:
        height = np.bincount(place, minlength=number + 1)[:number]
    else:
        if np.shape(weights) != np.shape(a):
            raise ValueError("weights should have the same shape as a.")
        height = summed_at(weights, place, number + 1)[:number]
        if height.dtype != as_array(weights).dtype and height.dtype.kind == as_array(weights).dtype.kind:
            height = height.astype(weights.dtype)
    if density:
        height = height / np.diff(edges) / np.sum(height)
    return height, edges


# Elements outside of all bins are counted in one more, which is left out: how many there are decides about no shape.


def _places(x: Any, edges: Any) -> Any:
    """The bin of each element; the last edge belongs to the last bin."""
    return np.where(x == edges[-1], edges.shape[0] - 2, np.searchsorted(edges, x, side="right") - 1)


def histogramdd(sample: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """Of points (n, d), or of a sequence of d arrays of n coordinates."""
    if isinstance(sample, (list, tuple)):
        coordinates = list(sample)
    else:
        sample = np.expand_dims(sample, 1) if np.ndim(sample) == 1 else sample
        coordinates = [sample[:, i] for i in _count(np.shape(sample)[1])]
    dimensions = len(coordinates)
    bins = list(bins) if isinstance(bins, (list, tuple)) or hasattr(bins, "ndim") else [bins] * dimensions
    if len(bins) != dimensions:
        raise ValueError("The dimension of bins must be equal to the dimension of the sample x.")
    ranges = [None] * dimensions if range is None else list(range)
    if len(ranges) != dimensions:
        raise ValueError("range argument must have one entry per dimension")
    edges = [_edges(*each, as_in_one_dimension=False) for each in zip(coordinates, bins, ranges, strict=True)]
    shape = tuple(e.shape[0] - 1 for e in edges)
    places = np.stack([_places(x, e) for x, e in zip(coordinates, edges, strict=True)])
    inside = np.all((places >= 0) & (places < np.reshape(shape, (-1, 1))), axis=0)
    number = math.prod(shape)
    strides = [math.prod(shape[i + 1 :]) for i in _count(dimensions)]
    flat = np.where(inside, np.sum(places * np.reshape(strides, (-1, 1)), axis=0), number)
    # NumPy counts in floats here.
    weights = np.ones(np.shape(flat)) if weights is None else weights
    height = np.reshape(summed_at(weights, flat, number + 1)[:number], shape)
    if density:
        total = np.sum(height)
        for axis, e in enumerate(edges):
            height = height / np.reshape(np.diff(e), (-1,) + (1,) * (dimensions - axis - 1))
        height = height / total
    return height, edges


_count = range  # the parameter of this name is NumPy's


def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Any, Any, Any]:
    if np.size(x) != np.size(y):
        raise ValueError("x and y must have the same length.")
    if not isinstance(bins, (int, np.integer)) and len(bins) not in (1, 2):
        bins = [bins, bins]  # one row of edges for both
    height, edges = histogramdd([x, y], bins, range, density, weights)
    return height, edges[0], edges[1]


composed(
    np.histogram_bin_edges,
    histogram_bin_edges,
    at=[call(distinct(-1, 1, 5), 3), call(distinct(-1, 1, 2, 3), bins=2, range=(-1.0, 1.0))],
)
composed(
    np.histogram,
    histogram,
    at=[
        call(distinct(-1, 1, 6), 3),
        call(distinct(-1, 1, 6), weights=real(0.5, 2, 6), bins=3),
        call(distinct(-1, 1, 6), bins=[-1.0, 0.1, 0.5, 2.0], density=True, weights=real(0.5, 2, 6)),
        call(distinct(-1, 1, 2, 3), 4, range=(-1.5, 1.5), weights=real(0.5, 2, 2, 3)),
        call(distinct(-1, 1, 6), 3, weights=complex_(0.5, 2, 6)),
    ],
)
composed(
    np.histogramdd,
    histogramdd,
    at=[
        call(distinct(-1, 1, 6, 2), 2, weights=real(0.5, 2, 6)),
        call(distinct(-1, 1, 5), bins=[2]),
        call([distinct(-1, 1, 5), distinct(-1, 1, 5)], [2, [-1.0, 0.1, 2.0]], weights=real(0.5, 2, 5), density=True),
        call(distinct(-1, 1, 5, 2), 2, [(-1.5, 1.5), None], weights=real(0.5, 2, 5)),
    ],
)
composed(
    np.histogram2d,
    histogram2d,
    at=[
        call(distinct(-1, 1, 6), distinct(-1, 1, 6), 2, weights=real(0.5, 2, 6)),
        call(distinct(-1, 1, 5), distinct(-1, 1, 5), [-1.0, 0.1, 0.5, 2.0], density=True, weights=real(0.5, 2, 5)),
        call(distinct(-1, 1, 5), distinct(-1, 1, 5), (2, 3), range=[[-1.5, 1.5], [-1.5, 2]]),
    ],
)
