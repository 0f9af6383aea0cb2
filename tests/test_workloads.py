"""The workloads of the benchmarks: the eager derivative of each program against the derivative written by hand."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")
import retrograde as rg
from benchmarks.harness import leaves

from .truth import close


def workload(name: str) -> Any:
    return importlib.import_module(f"benchmarks.workloads.{name}")


def in_its_arguments(module: Any, args: tuple[Any, ...]) -> Any:
    """The program as a function of the arguments that it is differentiated in."""

    def program(*xs: Any) -> Any:
        given = list(args)
        for position, x in zip(module.WRT, xs, strict=True):
            given[position] = x
        return module.program(*given)

    return program


@pytest.mark.parametrize("name", ["lse", "llsq", "ode", "det", "gmm", "lstm", "particle", "saddle"])
def test_the_gradient_is_that_by_hand(name: str) -> None:
    module = workload(name)
    args = module.inputs("tiny")
    ours = rg.gradient(in_its_arguments(module, args), *(args[i] for i in module.WRT))
    by_hand = module.by_hand.py_func(*args)
    for got, want in zip(ours, by_hand if isinstance(by_hand, tuple) else (by_hand,), strict=True):
        close(got, want, rtol=1e-10)


@pytest.mark.parametrize("name", "gmm ba lstm ht ode kmeans llsq lse det particle saddle".split())
def test_the_derivative_in_cpp_is_that_by_hand(name: str) -> None:
    module = workload(name)
    args = module.inputs("tiny")
    try:
        derivative = module.in_cpp()
    except ImportError as error:
        pytest.skip(str(error))
    for options in [{}, {"knows_the_hand": True}] if name == "ht" else [{}]:
        by_hand = module.by_hand.py_func(*args)
        for got, want in zip(leaves(derivative(*args, **options)), leaves(by_hand), strict=True):
            close(got, want, rtol=1e-10, atol=1e-12)


def test_the_gradient_and_the_diagonal_of_the_hessian_of_kmeans_are_those_by_hand() -> None:
    module = workload("kmeans")
    args = module.inputs("tiny")
    program = in_its_arguments(module, args)
    gradient, diagonal = module.by_hand.py_func(*args)
    close(rg.gradient(program, args[1])[0], gradient)
    close(rg.diaghessian(program, args[1]), diagonal)


def test_two_pullbacks_give_the_blocks_of_bundle_adjustment() -> None:
    module = workload("ba")
    args = module.inputs("tiny")
    errors, back = rg.pullback(in_its_arguments(module, args), *args[:3])
    blocks = module.by_hand.py_func(*args)
    for row in range(2):
        seed = np.zeros_like(errors)
        seed[:, row] = 1
        cameras_bar, points_bar, weights_bar = back(seed)
        close(np.column_stack([cameras_bar, points_bar, weights_bar]), blocks[:, row], rtol=1e-10)
    seeds = np.zeros((2, *errors.shape))
    seeds[0, :, 0] = seeds[1, :, 1] = 1
    close(module.shown(rg.vmap(back)(seeds)), blocks, rtol=1e-10)


def test_the_jacobian_of_the_hand_is_that_of_differences() -> None:
    module = workload("ht")
    args = module.inputs("tiny")
    program = in_its_arguments(module, args)
    theta_jacobian, us_jacobian = rg.jacobian(program, *args[:2])
    step = 1e-6
    for k in range(26):
        ahead, behind = args[0].copy(), args[0].copy()
        ahead[k] += step
        behind[k] -= step
        slope = (program(ahead, args[1]) - program(behind, args[1])) / (2 * step)
        np.testing.assert_allclose(theta_jacobian[:, :, k], slope, rtol=1e-6, atol=1e-8)
    for i, j in np.ndindex(4, 4):
        if i != j:
            assert not us_jacobian[i, :, j].any()
    for knows_the_hand in (False, True):
        by_hand, along = module.by_hand.py_func(*args, knows_the_hand)
        close(theta_jacobian, by_hand, rtol=1e-9, atol=1e-12)
        close(np.moveaxis(np.einsum("ijik->ijk", us_jacobian), -1, 0), along, rtol=1e-9, atol=1e-12)
