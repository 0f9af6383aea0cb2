"""Derivatives by PyTorch, of functions that are written with it, for arrays of NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def gradient(function: Callable[..., Any], wrt: tuple[int, ...]) -> Callable[..., Any]:
    """The gradient of a function of tensors in some of its arguments; one array where it is one argument."""
    import torch

    torch.set_num_threads(1)

    def derivative(*args: Any) -> Any:
        given = [torch.from_numpy(a) if isinstance(a, np.ndarray) else a for a in args]
        for i in wrt:
            given[i] = torch.as_tensor(given[i], dtype=torch.float64).requires_grad_()
        found = torch.autograd.grad(function(*given), [given[i] for i in wrt])
        arrays = tuple(part.numpy() for part in found)
        return arrays if len(wrt) > 1 else arrays[0]

    return derivative
