"""Public functions of NumPy that have no rule in the table, and why; a name is written as after `np.`.

`TAKEN_OVER` and `COMPOSED` are differentiable all the same; `NOT_NUMBERS` has nothing to differentiate; `UNSUPPORTED`
is refused when it is given a traced value. The gate (test_gate.py) fails on a name that has a rule by now, and the
support page (support_page.py) is made of these lists and the table.
"""

from __future__ import annotations


def _all(names: str, reason: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), reason)


TAKEN_OVER: dict[str, str] = {
    **_all(
        "array asanyarray asarray ascontiguousarray asfortranarray empty eye full identity ones zeros indices tri",
        "makes a new array: taken over while a transform runs",
    ),
    "arange": "taken over while a transform runs: differentiable in start and step",
    "kaiser": "taken over while a transform runs: differentiable in beta",
    "lib.stride_tricks.as_strided": "taken over while a transform runs: a read by place in memory",
    "frompyfunc": "the ufunc that it makes runs its Python function on traced elements, as np.vectorize does",
}

COMPOSED: dict[str, str] = _all(
    "row_stack",
    "NumPy's own Python code of it consists of functions that have rules",
)

NOT_NUMBERS: dict[str, str] = {
    **_all(
        "from_dlpack frombuffer fromfile fromfunction fromiter fromregex fromstring genfromtxt load loadtxt save"
        " savetxt savez savez_compressed",
        "reads or writes bytes, files or text",
    ),
    **_all(
        "base_repr binary_repr format_float_positional format_float_scientific"
        " get_printoptions set_printoptions printoptions typename",
        "makes text",
    ),
    **_all(
        "get_include getbufsize geterr geterrcall info setbufsize seterr seterrcall show_config show_runtime test"
        " linalg.test fft.test",
        "configures or describes NumPy itself",
    ),
    **_all(
        "can_cast common_type isdtype issubdtype min_scalar_type mintypecode promote_types isfortran"
        " isscalar iterable broadcast_shapes einsum_path",
        "asks about types, shapes or memory, not about numbers",
    ),
    **_all(
        "busday_count busday_offset datetime_as_string datetime_data is_busday",
        "takes dates, not numbers",
    ),
    **_all(
        "bartlett blackman hamming hanning fft.fftfreq fft.rfftfreq",
        "takes a number of points: nothing to differentiate",
    ),
    **_all(
        "diag_indices mask_indices tril_indices triu_indices",
        "takes sizes and makes indices: nothing to differentiate",
    ),
    **_all("packbits unpackbits", "takes and gives bits"),
}

UNSUPPORTED: dict[str, str] = {
    "nested_iters": "gives iterators over the memory itself: write the loop",
    **_all("asarray_chkfinite require", "makes a plain array: np.asarray(x), which is taken over"),
    **_all("asmatrix bmat", "makes np.matrix, which NumPy itself advises against"),
    **{
        f"{name}.{method}": "NumPy's own folds it in an order of its own on some processors: write the loop"
        for name in ("arctan2", "float_power", "power")
        for method in ("reduce", "reduceat")
    },
    **{
        f"ldexp.{method}": "its second argument is an integer, and its result is none: NumPy refuses it, too"
        for method in ("reduce", "accumulate", "reduceat")
    },
}

LISTED: dict[str, str] = TAKEN_OVER | COMPOSED | NOT_NUMBERS | UNSUPPORTED
