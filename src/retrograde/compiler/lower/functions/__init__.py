"""NumPy's functions and array methods, one subject a file: what each becomes in the form.

A handler is registered for the function itself, with the parameters that it knows:

    @handles(np.sum, methods="sum")
    def array_sum(lower, a, axis=None, keepdims=False): ...

An argument that is not listed is refused where it is written. Elementwise functions need no handler: the table of
operations has them.
"""

# The subjects register their handlers when they are imported.
from retrograde.compiler.lower.functions import (  # noqa: F401
    choices,
    complex_numbers,
    creation,
    einsum,
    linalg,
    matrices,
    order,
    reductions,
    scans,
    searches,
    shape,
    special,
)
from retrograde.compiler.lower.functions.arguments import as_array
from retrograde.compiler.lower.functions.complex_numbers import part
from retrograde.compiler.lower.functions.products import matmul
from retrograde.compiler.lower.functions.python import OF_CONSTANTS, VARIADIC, trip_count
from retrograde.compiler.lower.functions.registry import HANDLERS, METHODS, call_function
from retrograde.compiler.lower.functions.shape import matrix_transpose as transpose_matrices
from retrograde.compiler.lower.functions.shape import ravel, transpose

__all__ = [
    "HANDLERS",
    "METHODS",
    "OF_CONSTANTS",
    "VARIADIC",
    "as_array",
    "call_function",
    "matmul",
    "part",
    "ravel",
    "transpose",
    "transpose_matrices",
    "trip_count",
]
