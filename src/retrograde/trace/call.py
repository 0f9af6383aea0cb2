"""Calling a function that has a rule with traced values among its arguments: every kind of rule but the generated one.

The steps are the same in every mode: find the highest level among the differentiable arguments, compute the primal on
the values below it, and let that level keep what it needs (`Level.apply`).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from numpy import float64, ndarray

from retrograde.errors import ConversionError, UnsupportedArgumentError
from retrograde.originals import np
from retrograde.rules.contractions import without_zero_products
from retrograde.rules.products import has_nan
from retrograde.rules.table import (
    RULES,
    WITH_KEYWORD,
    Composed,
    Elementwise,
    General,
    Like,
    Linear,
    Multilinear,
    NoGradient,
    WithArguments,
)
from retrograde.trace.call_arguments import ATOMS, PARTS, known_keywords, normalised, positions_of
from retrograde.trace.elementwise_ops import elementwise_op, residuals
from retrograde.trace.handle import HANDLES, VIEWS, Traced, like_of
from retrograde.trace.layout import laid_out
from retrograde.trace.level import Level
from retrograde.trace.operators import GENERATED
from retrograde.trace.ops import match
from retrograde.trace.structure import of_numpy, plain_tree, rebuilt
from retrograde.trace.undecided import undecided
from retrograde.trace.views import kept, shares_memory, snapshot, view_of

__warningregistry__ = None  # see warning_places

Path = tuple[int, ...]


def call(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`function(*args, **kwargs)`, by the rule of the function."""
    if kwargs and function in WITH_KEYWORD:
        body = _body_of(WITH_KEYWORD[function], kwargs)
        if body is not None:
            return laid_out(body(*args, **kwargs), function, args, kwargs)
    rule = RULES[function]
    if isinstance(rule, WithArguments):
        return call_rule(rule, args, kwargs)
    if isinstance(rule, Composed):
        return laid_out(rule.body(*args, **known_keywords(rule, kwargs)), function, args, kwargs)
    if isinstance(rule, NoGradient):
        y = function(*map(plain_tree, args), **{name: plain_tree(value) for name, value in kwargs.items()})
        return undecided(y, args, [*kwargs.values()]) if rule.reads else y
    assert isinstance(rule, Elementwise)
    generated = GENERATED[function]
    if generated is not None and not kwargs:
        return generated(*args)
    return _call_elementwise(rule, args, kwargs)


def _body_of(bodies: dict[str, Callable[..., Any]], kwargs: dict[str, Any]) -> Callable[..., Any] | None:
    """The body for the first keyword that has one and says something."""
    for name, value in kwargs.items():
        if name in bodies and value is not None and value is not np._NoValue:  # type: ignore[attr-defined]
            return bodies[name]
    return None


def dispatch(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`call`, or what a batch makes of it, if that is the highest level among the arguments."""
    if kwargs and function in WITH_KEYWORD and _body_of(WITH_KEYWORD[function], kwargs) is not None:
        return call(function, args, kwargs)
    level = highest_level((args, *kwargs.values()))
    return level.map(function, args, kwargs) if level is not None and level.maps else call(function, args, kwargs)


def highest_level(tree: Any) -> Level | None:
    """The highest level of the traced values in a nested sequence."""
    if type(tree) in HANDLES:
        return tree.level  # type: ignore[no-any-return]
    highest: Level | None = None
    for x in tree if isinstance(tree, list | tuple) else ():
        if type(x) in HANDLES:
            level: Level | None = x.level
        elif isinstance(x, list | tuple):
            level = highest_level(x)
        else:
            continue
        if level is not None and (highest is None or level.depth > highest.depth):
            highest = level
    return highest


class Operand(NamedTuple):
    """A traced operand of the highest level: which differentiable argument, where inside it, and the value."""

    slot: int
    path: Path
    traced: Traced


_PLAIN = ATOMS | {ndarray}

# `Operand(slot, path, traced)`, without a frame of Python's: where large arrays have emptied the caches, each that an
# operation needs costs a µs or two, and so does a comprehension (benchmarks/rule_speed.py).
_operand = functools.partial(tuple.__new__, Operand)
_like = functools.partial(tuple.__new__, Like)


def call_rule(rule: WithArguments, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`rule.function(*args, **kwargs)`, where the rule takes the function's own arguments."""
    given = args
    positions = rule.args
    if kwargs or type(positions) is slice or len(args) != len(positions) or positions[-1] >= len(args):
        if kwargs or len(args) > 1:
            args, kwargs, positions = normalised(rule, args, kwargs)
        else:
            positions = positions_of(rule, args)
    if not positions:
        # np.where(condition): the call has no differentiable argument at all.
        return undecided(rule.function(*map(plain_tree, args), **kwargs), given)
    found: list[Operand] = []
    for slot, i in enumerate(positions):
        arg = args[i]
        if type(arg) in HANDLES:
            found.append(_operand((slot, (), arg)))
        elif isinstance(arg, list | tuple):
            found += [_operand((slot, path, x)) for path, x in _traced(arg)]
    if not found:
        # A traced value stands where no derivative can be taken; normalised let only integers and masks pass.
        return undecided(rule.function(*args, **kwargs), given)
    level = found[0].traced.level
    active = found
    if len(found) > 1:
        for operand in found:
            if operand.traced.level.depth > level.depth:
                level = operand.traced.level
        active = [operand for operand in found if operand.traced.level is level]
    if level.maps:
        return level.map(rule.function, args, kwargs)
    first = active[0].traced
    if level.records:
        for k, operand in enumerate(active):
            view: Any = operand.traced
            if type(view) in VIEWS:
                active[k] = _operand((operand.slot, operand.path, view.latest()))
    primals = list(args)
    if len(active) != len(args) or active[0].path or active[-1].path:
        for i, arg in enumerate(args):
            kind = type(arg)
            if kind in ATOMS or (kind in HANDLES and i in positions and arg.level is level):
                continue
            # Of differentiable arguments linear rules keep no values; masks, indices and counts are kept by every rule.
            is_linear = type(rule) is Linear and i in positions
            if kind is tuple and PARTS.issuperset(map(type, arg)):
                continue
            if kind is not ndarray:
                primals[i] = _kept_tree(snapshot if is_linear else functools.partial(kept, level=level), arg)
            elif not is_linear:
                primals[i] = kept(arg, level)
    if kwargs and not ATOMS.issuperset(map(type, kwargs.values())):
        keep = functools.partial(kept, level=level)
        kwargs = {name: _kept_tree(keep, value) for name, value in kwargs.items()}
    for operand in active:
        i = positions[operand.slot]
        primal = operand.traced.primal
        primals[i] = _replaced(primals[i], operand.path, primal) if operand.path else primal
    pull = None
    y_dot = None
    if type(rule) is General and rule.with_tangent is not None and level.pushes:
        before = Binding(rule, None, tuple(primals), kwargs, positions)
        y, y_dot = before.value_and_push(active, [operand.traced.link for operand in active])
    elif (
        type(rule) is General
        and rule.together is not None
        and (level.is_swept if rule.joins_all else level.records and type(primals[0]) is ndarray)
    ):
        y, pull = rule.together(*primals, **kwargs)
    elif rule.of_array is not None and type(primals[0]) is ndarray:
        y = rule.of_array(*primals, **kwargs)
    elif _PLAIN.issuperset(map(type, primals)) and not kwargs:
        y = rule.of_plain(*primals)
    else:
        y = rule.function(*primals, **kwargs)
    kind = type(y)
    if kind is not ndarray and issubclass(kind, ndarray):
        y = of_numpy(y)
    if kind is not float64 and (kind is not ndarray or y.dtype.kind != "f"):
        _check_not_cut(rule, y, active)
    binding = Binding(rule, y, tuple(primals), kwargs, positions, pull, y_dot)
    is_new = kind is float64 or (kind is ndarray and y.base is None and type(first) is Traced and y is not first.primal)
    if not is_new and len(active) == 1 and not active[0].path:
        views = _views(binding, active[0], first)
        if views is not None:
            return views
    made = level.apply(binding, active)
    if len(active) > 1 and isinstance(rule, General) and rule.gives_views and isinstance(y, tuple):
        return _with_arguments(made, binding, active)
    return made


def _with_arguments(made: Any, binding: Binding, active: list[Operand]) -> Any:
    """Results, of which those that are an argument are its value: who writes to one writes to the other."""
    arguments = {id(binding.args[binding.positions[o.slot]]): o.traced for o in active if not o.path}
    return tuple([arguments.get(id(part), value) for part, value in zip(binding.y, made, strict=True)])


def _check_not_cut(rule: WithArguments, y: Any, active: list[Operand]) -> None:
    """Refuse `np.sum(x, dtype=int)` and the like: integers made of traced floats have lost their derivative."""
    dtype = getattr(y, "dtype", None)
    if dtype is None or dtype.kind in "fc":
        return
    if any(operand.traced.dtype.kind in "fc" for operand in active):
        raise ConversionError(
            f"{rule.label} made {dtype} of traced floats, which loses their derivative",
            "leave dtype= out, or give a floating one",
            "dropgrad(x) as its argument, where the derivative is not wanted",
        )


def _views(binding: Binding, operand: Operand, x: Any) -> Any:
    """The views that a call gives of its one traced operand, or None if the result has memory of its own.

    Args:
        x: the value of which `operand` has the reading, if it is a view itself.
    """
    y: Any = binding.y
    if isinstance(binding.rule, General) and not (binding.rule.repeatable and binding.rule.gives_views):
        return None  # (not repeatable:) a user's own function, which says itself what its derivative is
    if type(y) is not ndarray and type(y) not in HANDLES and not isinstance(y, tuple | list):
        return None
    i = binding.positions[operand.slot]
    whole = binding.args[i]
    if type(x) in VIEWS and type(whole) not in VIEWS:
        # `whole` may be a copy; whether the result is a view is a question of the memory itself.
        whole = x.memory
        y = binding.rule.function(*binding.args[:i], whole, *binding.args[i + 1 :], **binding.kwargs)
    if y is whole:
        return x
    function, kwargs = binding.rule.function, binding.kwargs
    before, after = binding.args[:i], binding.args[i + 1 :]

    def step(v: Any) -> Any:
        return function(*before, v, *after, **kwargs)

    def read() -> Any:
        return x.level.apply(binding, [operand])

    if shares_memory(y, whole):
        if isinstance(binding.rule, General):
            # A rule that refuses an argument does so where it gives a view, too.
            pull = binding.rule.pullback(y, *binding.args, **kwargs)
            if y is binding.y:
                binding.made_with_y = pull
        return view_of(x, step, read)
    if isinstance(y, list | tuple) and any(part is whole or shares_memory(part, whole) for part in y):
        read_once = functools.cache(read)
        parts = []
        for k, part in enumerate(y):
            if part is whole:
                parts.append(x)
            elif shares_memory(part, whole):
                parts.append(view_of(x, lambda v, k=k: step(v)[k], lambda k=k: read_once()[k]))  # type: ignore[misc]
            else:
                parts.append(read_once()[k])
        return type(y)(parts)
    return None


def _call_elementwise(rule: Elementwise, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """An elementwise function of three or more arguments, or one that was given keywords."""
    extra = list(kwargs)
    if kwargs:
        # Asked only where it matters: not every NumPy knows the signatures of its ufuncs.
        bound = inspect.signature(rule.function).bind(*args, **kwargs)
        args, kwargs = bound.args, bound.kwargs
    if kwargs or len(args) > len(rule.partials):
        names = ", ".join(f"{name}=" for name in extra) or f"{len(args)} arguments"
        raise UnsupportedArgumentError(f"{rule.label} of a traced value does not take {names}")
    levels = [x.level for x in args if type(x) in HANDLES]
    level = max(levels, key=lambda level: level.depth)
    if level.maps:
        return level.map(rule.function, args, {})
    active = tuple(type(x) in HANDLES and x.level is level for x in args)
    primals = [x.primal if is_active else kept(x, level) for x, is_active in zip(args, active, strict=True)]
    y = rule.function(*primals)
    if type(y) is not ndarray and issubclass(type(y), ndarray):
        y = of_numpy(y)
    values = {"y": y, **dict(zip("abc", primals, strict=False))}
    links = [x.link for x, is_active in zip(args, active, strict=True) if is_active]
    likes = [like_of(p) for p, is_active in zip(primals, active, strict=True) if is_active]
    residual = [values[name] for name in residuals(rule, active)]
    node = (level.number(), elementwise_op(rule, active, True), *links, *residual, *likes)
    return level.follow(y, node)


# --- a rule bound to one call ------------------------------------------------------------------------------------


class Binding:
    """One call of a function with a rule: its result and its arguments as the highest level sees them."""

    __slots__ = ("args", "kwargs", "made_with_y", "positions", "pushed_with_y", "rule", "y")

    def __init__(
        self,
        rule: WithArguments,
        y: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        positions: tuple[int, ...],
        made_with_y: Callable[[Any], tuple[Any, ...]] | None = None,
        pushed_with_y: Any = None,
    ) -> None:
        self.rule = rule
        self.y = y
        self.args = args
        self.kwargs = kwargs
        self.positions = positions
        # The pull, where the function was computed together with it.
        self.made_with_y = made_with_y
        # The tangent, where the function was computed together with that.
        self.pushed_with_y = pushed_with_y

    def pull(self, active: list[Operand]) -> Callable[[Any], tuple[Any, ...]]:
        """`pull(y_bar)` → one cotangent (or a function that computes it) for each differentiable argument.

        Keeps alive only what the formulas of the `active` operands need.
        """
        rule, kwargs = self.rule, self.kwargs
        if self.made_with_y is not None:
            return self.made_with_y
        if isinstance(rule, General):
            return rule.pullback(self.y, *self.args, **kwargs)  # type: ignore[no-any-return]
        assert isinstance(rule, Linear)
        each_by_itself = isinstance(rule, Multilinear)
        formulas: list[Any] = [None] * len(self.positions)
        for operand in active:
            slot = operand[0]
            if formulas[slot] is not None:
                continue  # another member of the same list
            args = list(self.args)
            for other, i in enumerate(self.positions):
                if other == slot or not each_by_itself:
                    arg = args[i]
                    is_float = type(arg) is ndarray and arg.dtype.kind == "f"
                    args[i] = _like((arg.shape, arg.dtype)) if is_float else _like_tree(arg)
            formulas[slot] = rule.adjoints[slot], args

        def linear_pull(y_bar: Any) -> tuple[Any, ...]:
            bars: list[Any] = []
            for formula in formulas:
                bars.append(None if formula is None else formula[0](y_bar, *formula[1], **kwargs))
            return tuple(bars)

        return linear_pull

    def push(self, dots: list[Any]) -> Any:
        """The tangent of the result, from one tangent for each differentiable argument (None where there is none)."""
        rule, function = self.rule, self.rule.function
        if self.pushed_with_y is not None:
            return self.pushed_with_y
        if isinstance(rule, General):
            return rule.pushforward(self.y, *self.args, **self.kwargs)(*dots)
        if isinstance(rule, Multilinear):
            terms = [self._term(i, dot) for i, dot in zip(self.positions, dots, strict=True) if dot is not None]
            return terms[0] if len(terms) == 1 else sum(terms[1:], start=terms[0])
        args = list(self.args)
        for i, dot in zip(self.positions, dots, strict=True):
            args[i] = _zeros_tree(args[i]) if dot is None else dot
        return function(*args, **self.kwargs)

    def value_and_push(self, active: list[Operand], tangents: list[Any]) -> tuple[Any, Any]:
        """The result and its tangent, by a rule that has them together."""
        assert isinstance(self.rule, General)
        assert self.rule.with_tangent is not None
        with np.errstate(all="ignore"):
            return self.rule.with_tangent(self.args, self.tangents(active, tangents))  # type: ignore[no-any-return]

    def replaced(self, args: tuple[Any, ...], operand: Operand, value: Any) -> tuple[Any, ...]:
        """Arguments with another value in the place of an operand."""
        i = self.positions[operand.slot]
        return (*args[:i], _replaced(args[i], operand.path, value), *args[i + 1 :])

    def _term(self, i: int, dot: Any) -> Any:
        """What the tangent of argument `i` contributes to a product, where zero times infinity is zero."""
        others = [j for j in self.positions if j != i]

        def product(dot: Any, *factors: Any) -> Any:
            args = list(self.args)
            for j, x in zip((i, *others), (dot, *factors), strict=True):
                args[j] = x
            return self.rule.function(*args, **self.kwargs)

        factors = [self.args[j] for j in others]
        y_dot = product(dot, *factors)
        return without_zero_products(product, y_dot, dot, *factors) if has_nan(y_dot) else y_dot

    def tangents(self, active: list[Operand], tangents: list[Any]) -> list[Any]:
        """One tangent for each differentiable argument, in the argument's structure; `tangents` are the operands'."""
        dots: list[Any] = [None] * len(self.positions)
        for operand, dot in zip(active, tangents, strict=True):
            if operand.path:
                if dots[operand.slot] is None:
                    dots[operand.slot] = _zeros_tree(self.args[self.positions[operand.slot]])
                dot = _replaced(dots[operand.slot], operand.path, dot)
            dots[operand.slot] = dot
        return dots

    def matched(self, y_dot: Any) -> Any:
        """A tangent of the result in the result's shapes and dtypes."""
        if isinstance(self.y, tuple | list):
            return [match(dot, y) for dot, y in zip(y_dot, self.y, strict=True)]
        return match(y_dot, self.y)


# --- nested sequences of arguments ---------------------------------------------------------------------------------


def _traced(value: Any, path: Path = ()) -> Iterator[tuple[Path, Traced]]:
    """The traced values in an argument: itself, or the members of a (nested) sequence."""
    kind = type(value)
    if kind in HANDLES:
        yield path, value
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            yield from _traced(item, (*path, i))


def _replaced(tree: Any, path: Path, leaf: Any) -> Any:
    """The same nested sequence with another leaf; sequences become lists."""
    if not path:
        return leaf
    items = list(tree)
    items[path[0]] = _replaced(items[path[0]], path[1:], leaf)
    return items


def _map_tree(function: Callable[[Any], Any], tree: Any) -> Any:
    if isinstance(tree, list | tuple):
        return [_map_tree(function, item) for item in tree]
    return function(tree)


def _like_tree(tree: Any) -> Any:
    if type(tree) is ndarray or type(tree) in HANDLES:
        return Like(tree.shape, like_of(tree)[1])
    return _map_tree(lambda x: Like(np.shape(x), like_of(x)[1]), tree)


def _zeros_tree(tree: Any) -> Any:
    return _map_tree(lambda x: np.zeros(np.shape(x), like_of(x)[1])[()], tree)


def _kept_tree(keep: Callable[[Any], Any], tree: Any) -> Any:
    """An argument as nodes keep it; a list is copied, whatever it holds."""
    kind = type(tree)
    if kind is ndarray or kind in HANDLES:
        return keep(tree)
    if kind in ATOMS or (kind is tuple and PARTS.issuperset(map(type, tree))):
        return tree
    if isinstance(tree, list | tuple):
        return rebuilt(tree, [_kept_tree(keep, item) for item in tree])
    return keep(tree)


def distribute(y: Any, make_output: Callable[[int, Any], Any]) -> Any:
    """A result of several outputs in its own type, each floating output replaced by `make_output(position, output)`."""
    outputs = [
        make_output(i, output) if getattr(output, "dtype", np.dtype(float)).kind in "fc" else output
        for i, output in enumerate(y)
    ]
    return type(y)(*outputs) if hasattr(y, "_fields") else type(y)(outputs)
