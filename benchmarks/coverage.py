"""Which functions of NumPy and of `scipy.special` each library differentiates, by namespace and by mode.

A function counts if one of the libraries has a derivative of it, or if the tests list it as one that has none here
yet. What has no derivative (`argmax`) or makes no numbers (`savetxt`) is left out for everybody; the completeness gate
in the tests accounts for it. Several names of one function count once.

Ours are in the table of rules, of which each serves both modes; a function that cannot be dispatched and is taken over
while a transform runs (`np.array`) counts where a peer has it. autograd's are its `primitive_vjps` and
`primitive_jvps`, and the functions that its namespaces make of them in Python, which count for both modes. MyGrad's are
what it registers for NumPy's protocols; it has no forward mode. Neither peer differentiates methods of ufuncs.

Target: no function without a derivative here.
"""

from __future__ import annotations

import importlib
import inspect
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .harness import OURS, Report, Row, Table, limit

REVERSE, FORWARD = "reverse", "forward"
METHODS = "ufunc methods"
NAMESPACES = ("numpy", "numpy.linalg", "numpy.fft", METHODS, "scipy.special")
NOT_YET = "not written yet"

Names = dict[str, set[str]]  # by mode

UNSUPPORTED = Path(__file__).parents[1] / "tests" / "unsupported.py"


def functions(namespace: str) -> Iterator[tuple[str, Any]]:
    """The functions of a namespace under one name each."""
    if namespace == METHODS:
        for name, ufunc in functions("numpy"):
            if isinstance(ufunc, np.ufunc) and ufunc.signature is None and ufunc.nin == 2 and ufunc.nout == 1:
                for method in ("reduce", "accumulate", "reduceat", "outer"):
                    yield f"{name}.{method}", getattr(ufunc, method)
        return
    module = importlib.import_module(namespace)
    seen: dict[int, str] = {}
    for name in dir(module):
        function = getattr(module, name)
        if name.startswith("_") or not callable(function) or inspect.isclass(function):
            continue
        known = seen.setdefault(id(function), name)
        if known == name or function.__name__ == name:
            seen[id(function)] = name
    for name in seen.values():
        yield name, getattr(module, name)


def of_retrograde(namespace: str) -> Names:
    from retrograde import rules
    from retrograde.rules.table import RULES, NoGradient

    rules.load_scipy()
    names = {name for name, f in functions(namespace) if f in RULES and not isinstance(RULES[f], NoGradient)}
    return {REVERSE: names, FORWARD: set(names)}


def taken_over(namespace: str) -> set[str]:
    """What is intercepted while a transform runs, since NumPy and SciPy do not dispatch it."""
    module = importlib.import_module(namespace)

    def names(_: float) -> set[str]:
        return {name for name, function in vars(module).items() if function is not before.get(name)}

    from retrograde import gradient

    before = dict(vars(module))
    found: set[str] = set()
    gradient(lambda x: found.update(names(x)) or x, 1.0)  # type: ignore[func-returns-value]
    return found


def of_autograd(namespace: str) -> Names:
    from autograd.core import primitive_jvps, primitive_vjps

    if namespace == METHODS:
        return {REVERSE: set(), FORWARD: set()}
    module = importlib.import_module(f"autograd.{namespace}")
    found: Names = {REVERSE: set(), FORWARD: set()}
    for name, _ in functions(namespace):
        function = getattr(module, name, None)
        is_composed = inspect.isfunction(function) and not hasattr(function, "_is_autograd_primitive")
        if is_composed and name in AUTOGRAD_COMPOSES:
            found[REVERSE].add(name)
            found[FORWARD].add(name)
        if function in primitive_vjps:
            found[REVERSE].add(name)
        if function in primitive_jvps:
            found[FORWARD].add(name)
    return found


# Of the Python functions in its namespaces those that give a derivative; the others ask about types and shapes.
AUTOGRAD_COMPOSES = frozenset(
    "append array column_stack concatenate hstack mean norm select stack std var vstack where".split()
)


def of_mygrad(namespace: str) -> Names:
    import mygrad
    from mygrad.tensor_base import _REGISTERED_DIFFERENTIABLE_NUMPY_FUNCS, _REGISTERED_UFUNC

    known = {*_REGISTERED_DIFFERENTIABLE_NUMPY_FUNCS, *_REGISTERED_UFUNC}
    found: Names = {REVERSE: set(), FORWARD: set()}
    for name, function in functions(namespace):
        module = getattr(getattr(mygrad, name, None), "__module__", "")
        # What it takes over without a derivative: argmax, zeros_like.
        if function in known and not module.startswith(("mygrad.math.nondiff", "mygrad.tensor_creation")):
            found[REVERSE].add(name)
    return found


LIBRARIES = {OURS: of_retrograde, "autograd": of_autograd, "MyGrad": of_mygrad}


def not_yet(namespace: str) -> set[str]:
    """The functions that the gate lists as unsupported without a reason in the function itself."""
    reasons = runpy.run_path(str(UNSUPPORTED))["UNSUPPORTED"]
    prefix = "" if namespace in ("numpy", METHODS) else namespace.removeprefix("numpy.") + "."
    names = {name for name, _ in functions(namespace)}
    return {name for name in names if reasons.get(prefix + name, "").startswith(NOT_YET)}


def counts(names: Names | None) -> str:
    return "–" if names is None else f"{len(names[REVERSE])} / {len(names[FORWARD])}"


def listed(names: set[str], every: set[str]) -> str:
    if names == every:
        return f"all {len(every)}"
    return f"{len(names)}: {' '.join(sorted(names))}" if names else "none"


def run(quick: bool) -> Report:
    rows, lines, notes, targets = [], [], [], []
    for namespace in NAMESPACES:
        found: dict[str, Names] = {}
        for library, of in LIBRARIES.items():
            try:
                found[library] = of(namespace)
            except ImportError as error:
                notes.append(f"{namespace}: {library} skipped, {error.name} is not installed")
        every = set().union(*(names[REVERSE] for names in found.values()), not_yet(namespace))
        if namespace != METHODS:
            for names in found[OURS].values():
                names |= taken_over(namespace) & every
        lines.append((namespace, str(len(every)), *(counts(found.get(library)) for library in LIBRARIES)))
        for library, by_mode in found.items():
            for mode, have in by_mode.items():
                race = f"{namespace}, {mode}, lacking"
                rows.append(Row(race, library, "functions", float(len(every - have)), rounds=1))
                if mode == REVERSE or have != by_mode[REVERSE]:
                    notes.append(f"{namespace}, {mode}: {library} lacks {listed(every - have, every)}")
        targets += [limit(f"{namespace}, {mode}, lacking", 0) for mode in (REVERSE, FORWARD)]
    header = ("reverse / forward", "functions", *LIBRARIES)
    table = Table(header, lines, numbers=tuple(range(1, len(header))))
    return Report("Differentiable functions with a derivative", rows, targets, notes, table)
