"""How the functions of NumPy and SciPy map over a batch, a family a file."""

# Before any transform runs, which replaces functions of NumPy for its time. SciPy's are loaded when they are met.
from retrograde.batch.mappings import elementwise, indexing, joining, linalg, order, products, reductions, scans, shapes

__all__ = ["elementwise", "indexing", "joining", "linalg", "order", "products", "reductions", "scans", "shapes"]
