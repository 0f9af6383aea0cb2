"""NumPy's loops over the elements of arrays that call Python code: `np.vectorize` and `np.frompyfunc`.

Both make arrays of objects, which would hide traced values. With a traced argument the loop is run here, on traced
elements, and the results are joined. `np.vectorize` is a class whose objects exist before a transform begins, so that
its `__call__` stands for the other while one runs (see interception.py).
"""

from __future__ import annotations

import re
from typing import Any

from retrograde.errors import ConversionError
from retrograde.originals import np
from retrograde.trace.creation import array_of, contains_traced
from retrograde.trace.handle import HANDLES, plain

vectorize_call = np.vectorize.__call__


def vectorized(self: np.vectorize, *args: Any, **kwargs: Any) -> Any:
    """`np.vectorize(f)(*args, **kwargs)`."""
    if not contains_traced(args) and not contains_traced([*kwargs.values()]):
        return vectorize_call(self, *args, **kwargs)
    places = [i for i in range(len(args)) if i not in self.excluded]
    names = [name for name in kwargs if name not in self.excluded]

    def one(*pieces: Any) -> Any:
        whole, named = list(args), dict(kwargs)
        for i, piece in zip(places, pieces, strict=False):
            whole[i] = piece
        named.update(zip(names, pieces[len(places) :], strict=True))
        return self.pyfunc(*whole, **named)

    arrays = [_array(args[i]) for i in places] + [_array(kwargs[name]) for name in names]
    cores = _core_dimensions(self.signature) if self.signature else [0] * len(arrays)
    if len(cores) != len(arrays):
        raise TypeError(f"wrong number of positional arguments: expected {len(cores)}, got {len(arrays)}")
    ends = [np.ndim(x) - core for x, core in zip(arrays, cores, strict=True)]
    loop = np.broadcast_shapes(*(np.shape(x)[:end] for x, end in zip(arrays, ends, strict=True)))
    arrays = [np.broadcast_to(x, loop + np.shape(x)[end:]) for x, end in zip(arrays, ends, strict=True)]
    results = [one(*(x[index] for x in arrays)) for index in np.ndindex(loop)]
    if not results and self.otypes is None:
        raise ValueError("cannot call `vectorize` on size 0 inputs unless `otypes` is set")
    dtypes: Any = self.otypes or None
    if not results:
        outputs = tuple(np.zeros(loop, dtype) for dtype in dtypes)
        return outputs if len(outputs) > 1 else outputs[0]
    if not isinstance(results[0], tuple):
        return _joined(results, loop, dtypes and dtypes[0])
    columns = list(zip(*results, strict=True))
    dtypes = dtypes or [None] * len(columns)
    return tuple(_joined(column, loop, dtype) for column, dtype in zip(columns, dtypes, strict=True))


def called_on_objects(function: np.ufunc, inputs: tuple[Any, ...]) -> Any:
    """A ufunc that `np.frompyfunc` made, on arrays of traced elements."""
    results = function(*map(_objects, inputs))
    if isinstance(results, tuple):
        return tuple(map(_unboxed, results))
    return _unboxed(results)


def takes_objects(function: Any) -> bool:
    """Whether `np.frompyfunc` made it."""
    return isinstance(function, np.ufunc) and function.types == ["O" * function.nin + "->" + "O" * function.nout]


def _array(x: Any) -> Any:
    x = array_of(x) if contains_traced(x) else np.asarray(x)
    return x if np.ndim(x) or type(x) is np.ndarray else np.reshape(x, ())


def _core_dimensions(signature: str) -> list[int]:
    """How many axes of each argument belong to one call: "(m,n),(n)->(m)" gives [2, 1]."""
    inputs = signature.partition("->")[0]
    return [
        len(core.replace(" ", "").strip(",").split(",")) if core.strip() else 0
        for core in re.findall(r"\(([^)]*)\)", inputs)
    ]


def _joined(results: Any, loop: tuple[int, ...], dtype: Any) -> Any:
    """The results of all calls in one array; as NumPy has it, of the dtype of the first one, unless one is given."""
    first = getattr(results[0], "dtype", None) or np.result_type(plain(results[0]))
    y = array_of(list(results))
    if dtype is not None:
        y = y.astype(dtype)
    elif first.kind not in "fc" and y.dtype.kind in "fc" and contains_traced(list(results)):
        raise ConversionError(
            f"np.vectorize would make {first} of all results since the first one is {first}, which loses a derivative",
            "np.vectorize(f, otypes=[float])",
        )
    return np.reshape(y, loop + np.shape(y)[1:])


def _objects(x: Any) -> Any:
    """An array of objects, which are the elements of a traced array."""
    if type(x) not in HANDLES and not contains_traced(x):
        return x
    x = _array(x)
    objects = np.empty(x.shape, object)
    for index in np.ndindex(x.shape):
        objects[index] = x[index]
    return objects


def _unboxed(results: Any) -> Any:
    return array_of(results.tolist()) if type(results) is np.ndarray and contains_traced(results.tolist()) else results
