"""The points at which a rule is tried, drawn from the domains that it lists, in single and in double precision."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from retrograde.rules.points import Call, Domain
from retrograde.rules.table import Elementwise, Rule

STEP = 1e-4  # of the difference quotients that will be taken at the points


@dataclass(frozen=True)
class Slot:
    """The place of one differentiable array inside a call."""

    index: int


@dataclass(frozen=True)
class Point:
    """One call of a rule's function: a template of arguments with slots, and the arrays that go into them."""

    label: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    leaves: tuple[Any, ...]

    @property
    def single(self) -> bool:
        return any(dtype_of(x) in (np.float32, np.complex64) for x in self.leaves)

    def call(self, leaves: Sequence[Any] | None = None) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments with `leaves` in their places; every array in them is read-only."""
        leaves = [locked(x) for x in (self.leaves if leaves is None else leaves)]
        return _fill(self.args, leaves), _fill(self.kwargs, leaves)

    def value(self, function: Callable[..., Any], leaves: Sequence[Any] | None = None) -> Any:
        args, kwargs = self.call(leaves)
        return function(*args, **kwargs)

    def in_double(self) -> Point:
        return replace(self, leaves=tuple(_in_double(x) for x in self.leaves))


def points(rule: Rule) -> list[Point]:
    """Every point at which the rule is to be tried, in single and in double precision."""
    return list(_elementwise_points(rule) if isinstance(rule, Elementwise) else _call_points(rule))


def _elementwise_points(rule: Elementwise) -> Iterator[Point]:
    domains = tuple(rule.at)
    count = sum(isinstance(d, Domain) for d in domains)
    shapes: list[tuple[tuple[int, ...], ...]] = [((),) * count, ((3,),) * count, ((2, 3),) * count]
    broadcasts = [((2, 1), (3,), (1, 1, 3))[:count], ((2, 3), (), (3,))[:count]] if count > 1 else []
    if getattr(rule.function, "__module__", None) == "math":  # math.erf takes numbers only
        shapes, broadcasts = shapes[:1], []
    plain = any(isinstance(d, Domain) and d.kind == "complex" for d in domains)
    for shape in shapes + broadcasts:
        yield _elementwise_point(rule, domains, shape)
    for shape in [*shapes[1:2], *broadcasts[:1]]:
        yield _elementwise_point(rule, domains, shape, single=True)
        if not plain and _takes_complex(rule.function):
            yield _elementwise_point(rule, domains, shape, in_plane=True)


def _elementwise_point(
    rule: Elementwise, domains: tuple[Any, ...], shapes: Any, single: bool = False, in_plane: bool = False
) -> Point:
    label = " ".join("x".join(map(str, shape)) or "scalar" for shape in shapes)
    label += " single" * single + " complex" * in_plane
    rng = generator(rule, label)
    free = [domain for domain in domains if isinstance(domain, Domain)]
    for _ in range(100):
        drawn = [domain.sample(rng, shape) for domain, shape in zip(free, shapes, strict=True)]
        if all(np.min(np.abs(np.subtract(a, b))) > 100 * STEP for a, b in itertools.combinations(drawn, 2)):
            break  # no difference quotient crosses a tie of two arguments
    if in_plane:
        for k, domain in enumerate(free):
            height = min(1.0, (domain.high - domain.low) / 2)
            drawn[k] = drawn[k] + 1j * height * rng.uniform(-1, 1, np.shape(drawn[k]))
    leaves = [x.item() if np.ndim(x) == 0 and not isinstance(x, (float, complex)) else x for x in drawn]
    if single:
        leaves = [_in_single(x) for x in leaves]
    slots = iter(range(len(leaves)))
    template = [Slot(next(slots)) if isinstance(domain, Domain) else domain for domain in domains]
    return Point(label, tuple(template), {}, tuple(leaves))


def _takes_complex(function: Any) -> bool:
    return isinstance(function, np.ufunc) and any(t.startswith("D" * function.nin + "->") for t in function.types)


def _call_points(rule: Rule) -> Iterator[Point]:
    for number, call in enumerate(rule.at):
        assert isinstance(call, Call), f"{rule.name}: `at` takes call(…) for this kind of rule, not {call!r}"
        label = _describe(call)
        rng = generator(rule, f"{number} {label}")
        leaves: list[Any] = []
        args = _draw(call.args, rng, leaves)
        kwargs = _draw(call.kwargs, rng, leaves)
        point = Point(label, args, kwargs, tuple(leaves))
        yield point
        if leaves:
            yield replace(point, label=label + " single", leaves=tuple(_in_single(x) for x in leaves))


def _draw(template: Any, rng: np.random.Generator, leaves: list[Any]) -> Any:
    """The template with a slot for each domain, whose sample is appended to `leaves`."""
    if isinstance(template, Domain):
        leaves.append(template.sample(rng))
        return Slot(len(leaves) - 1)
    if isinstance(template, dict):
        return {key: _draw(value, rng, leaves) for key, value in template.items()}
    if type(template) in (tuple, list):
        return type(template)(_draw(value, rng, leaves) for value in template)
    return template


def _fill(template: Any, leaves: Sequence[Any]) -> Any:
    if isinstance(template, Slot):
        return leaves[template.index]
    if isinstance(template, dict):
        return {key: _fill(value, leaves) for key, value in template.items()}
    if type(template) in (tuple, list):
        return type(template)(_fill(value, leaves) for value in template)
    return locked(template)


def slots(template: Any) -> list[int]:
    if isinstance(template, Slot):
        return [template.index]
    if isinstance(template, dict):
        template = tuple(template.values())
    return [i for part in template for i in slots(part)] if type(template) in (tuple, list) else []


def _describe(thing: Any) -> str:
    if isinstance(thing, Call):
        parts = [_describe(a) for a in thing.args] + [f"{k}={_describe(v)}" for k, v in thing.kwargs.items()]
        return ", ".join(parts)
    if isinstance(thing, Domain):
        return f"{thing.kind} {'x'.join(map(str, thing.shape)) or 'scalar'}"
    if type(thing) in (tuple, list):
        left, right = "()" if type(thing) is tuple else "[]"
        return left + ", ".join(_describe(part) for part in thing) + right
    if isinstance(thing, np.ndarray):
        return f"{thing.dtype} {'x'.join(map(str, thing.shape)) or 'scalar'}"
    text = getattr(thing, "__name__", None) or repr(thing)
    return text if len(text) < 40 else text[:37] + "…"


def generator(rule: Rule, label: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(f"{rule.name} {label}".encode()))


def locked(x: Any) -> Any:
    if not isinstance(x, np.ndarray):
        return x
    x = x.copy()
    x.flags.writeable = False
    return x


def dtype_of(x: Any) -> np.dtype[Any]:
    return np.asarray(x).dtype


def _in_single(x: Any) -> Any:
    single = np.complex64 if np.iscomplexobj(x) else np.float32
    return x.astype(single) if isinstance(x, np.ndarray) else single(x)


def _in_double(x: Any) -> Any:
    double = np.complex128 if np.iscomplexobj(x) else np.float64
    return x.astype(double) if isinstance(x, np.ndarray) else double(x)
