"""Public functions of NumPy that Retrograde refuses when it is given a traced value, and why.

A name is written as after `np.`. The gate (test_gate.py) fails on a name that has a rule by now.
"""

from __future__ import annotations


def _all(names: str, reason: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), reason)


UNSUPPORTED: dict[str, str] = {
    **_all(
        "array asanyarray asarray asarray_chkfinite ascontiguousarray asfortranarray empty eye full identity ones zeros"
        " arange require",
        "makes a new array: intercepted while a transform runs, not a primitive",
    ),
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
        " isscalar iterable may_share_memory shares_memory broadcast_shapes einsum_path",
        "asks about types, shapes or memory, not about numbers",
    ),
    **_all(
        "busday_count busday_offset datetime_as_string datetime_data is_busday",
        "takes dates, not numbers",
    ),
    **_all(
        "bartlett blackman hamming hanning kaiser fft.fftfreq fft.rfftfreq",
        "takes a number of points: nothing to differentiate",
    ),
    **_all(
        "diag_indices indices mask_indices tril_indices triu_indices tri",
        "takes sizes and makes indices: nothing to differentiate",
    ),
    **_all(
        "apply_along_axis apply_over_axes frompyfunc nested_iters",
        "calls Python functions piece by piece: write the loop, or vmap",
    ),
    **_all("asmatrix bmat", "makes np.matrix, which NumPy itself advises against"),
    **_all("packbits unpackbits", "takes and gives bits"),
    **_all(
        "intersect1d setdiff1d setxor1d union1d unique_all unique_counts unique_inverse unique_values",
        "not written yet: the set is of values, and each has a place that it came from",
    ),
    **_all("histogram2d histogramdd", "not written yet: differentiable in its weights alone"),
    **_all("poly polydiv polyfit roots", "not written yet: np.polynomial is what NumPy advises"),
    **_all("row_stack sort_complex", "outdated: np.vstack, np.sort"),
    **{
        f"{name}.{method}": "not written yet: a fold of a function that nobody folds"
        for name in (
            "arctan2 copysign divide float_power floor_divide fmod heaviside hypot ldexp logaddexp2 nextafter power"
            " remainder subtract"
        ).split()
        for method in ("reduce", "accumulate", "reduceat")
    },
    **_all(
        "copysign.outer float_power.outer floor_divide.outer fmax.outer fmin.outer fmod.outer heaviside.outer"
        " ldexp.outer logaddexp2.outer nextafter.outer remainder.outer",
        "not written yet: np.f(a[:, None], b) is the same",
    ),
    **_all(
        "fmax.reduceat fmin.reduceat logaddexp.reduceat maximum.reduceat minimum.reduceat",
        "not written yet: np.f.reduce over slices is the same",
    ),
}
