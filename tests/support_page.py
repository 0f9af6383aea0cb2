"""Writes docs/support.md, the page of what is supported, from the table of rules and the lists of the gates.

PYTHONPATH=src:tests python tests/support_page.py > docs/support.md
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import laws
import numpy as np
import scipy
import test_gate
import test_gate_special
import test_rules
import test_rules_in_the_engine
from test_arguments import is_walked, keywords
from unsupported import COMPOSED, NOT_NUMBERS, TAKEN_OVER, UNSUPPORTED
from unsupported_special import UNSUPPORTED_SPECIAL

from retrograde.rules.scipy_special_dispatch import named
from retrograde.rules.table import RULES, Composed, Elementwise, Linear, Multilinear, NoGradient, Rule
from retrograde.trace.attributes import _ELSEWHERE

KINDS = {
    "elementwise": "one partial derivative an argument",
    "linear": "linear in its arguments together",
    "multilinear": "linear in each of its arguments",
    "general": "a pullback and a pushforward",
    "composed": "a body of other functions that have rules",
}
METHODS = ("reduce", "accumulate", "reduceat", "outer", "at")


def kind(rule: Rule) -> str:
    if isinstance(rule, Multilinear):
        return "multilinear"
    names = {Elementwise: "elementwise", Linear: "linear", Composed: "composed", NoGradient: "none"}
    return names.get(type(rule), "general")


def page() -> str:
    return "\n".join([*_head(), *_numpy(), *_special()]) + "\n"


def versions() -> str:
    """The versions that the page is true of, to the minor one."""
    return f"NumPy {_minor(np.__version__)} and SciPy {_minor(scipy.__version__)}"


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


# --- the parts -------------------------------------------------------------------------------------------------------


def _head() -> list[str]:
    engine = len(test_rules_in_the_engine.POINTS)
    checks = len(test_rules.POINTS) * len(laws.LAWS) + len(test_rules.RULED) * len(laws.FORM_LAWS)
    walked = [rule for rule in RULES.values() if is_walked(rule)]
    named_arguments = sum(len(keywords(rule)) for rule in walked)
    return [
        "# What is supported",
        "",
        "This page is made by `tests/support_page.py` from the table of rules; a test keeps it true. It counts the",
        f"public names of {versions()}. In every mode the same rules serve.",
        "",
        "| | |",
        "|---|---|",
        f"| functions with a rule | {len(test_rules.RULED)} |",
        f"| functions without a derivative, for a reason | {sum(isinstance(r, NoGradient) for r in RULES.values())} |",
        f"| public functions of NumPy that nobody has decided about | {len(test_gate.missing())} |",
        f"| functions and methods of ufuncs of NumPy that are refused | {len(UNSUPPORTED)} |",
        f"| points at which the laws of a rule run | {len(test_rules.POINTS)} |",
        f"| laws (`tests/laws.py`) | {len(laws.LAWS)} at each point, {len(laws.FORM_LAWS)} of each rule's form |",
        f"| checks by laws: rules × points × laws | {checks} |",
        f"| checks through the engine: points × 2 modes × 2 orders | {engine * 4} |",
        f"| functions whose keywords are walked, and keywords | {len(walked)}, {named_arguments} |",
        "",
    ]


def _numpy() -> list[str]:
    plain = {n: f for n, f in test_gate.ACCOUNTABLE.items() if not isinstance(getattr(f, "__self__", None), np.ufunc)}
    lines = ["## NumPy", "", *_rules({name: RULES[f] for name, f in plain.items() if f in RULES})]
    lines += ["### Without a rule, and differentiable", ""]
    lines += _by_reason({**TAKEN_OVER, **COMPOSED}, plain)
    lines += ["`np.polynomial`: all functions and classes; they are Python code that runs on traced values.", ""]
    lines += ["### No derivative", ""]
    lines += _by_reason({n: RULES[f].why for n, f in plain.items() if isinstance(RULES.get(f), NoGradient)}, plain)  # type: ignore[attr-defined]
    lines += ["### Nothing to differentiate", "", *_by_reason(NOT_NUMBERS, plain)]
    lines += ["### Refused, with an error that says so", "", *_by_reason(UNSUPPORTED, plain)]
    return lines + _methods() + _attributes()


def _methods() -> list[str]:
    lines = ["### Methods of ufuncs", ""]
    for method in METHODS[:-1]:
        names = [n for n, f in test_gate.ACCOUNTABLE.items() if n.endswith("." + method) and _is_ruled(f)]
        lines += [f"`{method}`: {_names(name.rpartition('.')[0] for name in names)}", ""]
    folds = {n: why for n, why in UNSUPPORTED.items() if n.rpartition(".")[2] in METHODS[:-1]}
    lines += ["Refused:", "", *_by_reason(folds, test_gate.ACCOUNTABLE)]
    return lines


def _is_ruled(function: Any) -> bool:
    return function in RULES and not isinstance(RULES[function], NoGradient)


def _attributes() -> list[str]:
    public = [name for name in dir(np.ndarray) if not name.startswith("_")]
    lines = ["### Attributes and methods of arrays", "", _names(n for n in public if n not in _ELSEWHERE), ""]
    lines += ["Refused on a traced value:", ""]
    return [*lines, *(f"- `{name}`: {way}" for name, way in _ELSEWHERE.items() if name in public), ""]


def _special() -> list[str]:
    functions = test_gate_special.FUNCTIONS
    found = {name: RULES.get(named(name)) or RULES.get(f) for name, f in functions.items()}
    rules = {name: rule for name, rule in found.items() if rule is not None}
    lines = ["## scipy.special", "", *_rules(rules), "### Arguments without a derivative", ""]
    lines += ["All continuous arguments are differentiated, shapes and orders included. Not these:", ""]
    for name, rule in rules.items():
        arguments = refused_arguments(rule)
        if arguments:
            lines.append(f"- `{name}`: {', '.join(arguments)}")
    return [*lines, "", "### Refused, with an error that says so", "", *_by_reason(UNSUPPORTED_SPECIAL, functions)]


def refused_arguments(rule: Rule) -> list[str]:
    """The arguments of which a rule says that they are integers, or bound to another."""
    slopes: Iterable[Any] = rule.partials if isinstance(rule, Elementwise) else ()
    if hasattr(rule, "pullback"):
        slopes = inspect.getclosurevars(rule.pullback).nonlocals.get("slopes", ())
    return [
        inspect.getclosurevars(slope).nonlocals["argument"]
        for slope in slopes
        if getattr(slope, "__name__", "") == "refuse"
    ]


def _rules(rules: dict[str, Rule]) -> list[str]:
    by_kind: dict[str, list[str]] = defaultdict(list)
    for name, rule in rules.items():
        by_kind[kind(rule)].append(name)
    lines = ["### By a rule", ""]
    for name, what in KINDS.items():
        if by_kind[name]:
            lines += [f"**{name}** ({what}), {len(by_kind[name])}: {_names(by_kind[name])}", ""]
    return lines


def _by_reason(reasons: dict[str, str], of: dict[str, Any]) -> list[str]:
    names: dict[str, list[str]] = defaultdict(list)
    for name, reason in reasons.items():
        if name in of or name.startswith("*"):
            names[reason].append(name)
    return [*(f"- {_names(members)}: {reason}" for reason, members in names.items()), ""]


def _names(names: Iterable[str]) -> str:
    return " ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    print(page(), end="")
