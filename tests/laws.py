"""The laws that every rule obeys, each a function of (rule, point).

The laws act on the rule's data and need no engine (see interpreter.py), so that a failure points at a formula and at
nothing else. They cannot see what is wrong only at awkward points (zeros, kinks, ties, empty arrays): hand-worked
numbers pin those.

`points(rule)` are the places to try, `check(rule, point)` runs every law of `LAWS` at one of them, and
`check_form(rule)` those of `FORM_LAWS`, which look at the rule alone.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from interpreter import add, is_differentiable, map_outputs, outputs, puller, push, zeros
from sampling import STEP, Point, dtype_of, generator, points

from retrograde.rules.table import Composed, Elementwise, General, Linear, Rule, WithArguments

# --- Random tangents and cotangents ----------


def _draw_like(rng: np.random.Generator, x: Any) -> Any:
    """A random tangent or cotangent of an array."""
    v = rng.uniform(-1, 1, np.shape(x))
    if np.iscomplexobj(x):
        v = v + 1j * rng.uniform(-1, 1, np.shape(x))
    v = np.asarray(v, dtype_of(x))
    v.flags.writeable = False
    return v if isinstance(x, np.ndarray) else v[()]


def _draw_cotangent(rng: np.random.Generator, y: Any) -> Any:
    """None for an output of integers, as for one that nobody uses."""
    return map_outputs(lambda part: _draw_like(rng, part) if is_differentiable(part) else None, y)


def _one_output_used(y_bar: Any) -> list[Any]:
    """The cotangent itself and, where there are several outputs, each of them with None for the others."""
    if not isinstance(y_bar, tuple) or len(y_bar) == 1:
        return [y_bar]
    alone = [
        tuple(bar if i == k else None for i, bar in enumerate(y_bar)) for k in range(len(y_bar)) if y_bar[k] is not None
    ]
    return [y_bar, *alone]


def _inner(a: Any, b: Any) -> float:
    """Re⟨a, b⟩, to which an output that is None adds nothing."""
    pairs = [(p, q) for p, q in zip(outputs(a), outputs(b), strict=True) if p is not None and q is not None]
    return float(sum(np.sum(np.real(np.conj(np.asarray(p)) * np.asarray(q))) for p, q in pairs))


def _seeded(rule: Rule, point: Point) -> tuple[np.random.Generator, Any, list[Any], Any]:
    """A generator, the output, a tangent for each leaf and a cotangent of the output."""
    rng = generator(rule, "seed " + point.label)
    y = point.value(rule.function)
    dots = [_draw_like(rng, x) for x in point.leaves]
    return rng, y, dots, _draw_cotangent(rng, y)


def _close(got: Any, want: Any, tolerance: float, what: str) -> None:
    got, want = outputs(got), outputs(want)
    assert len(got) == len(want), f"{what}: {len(got)} outputs, not {len(want)}"
    for g, w in zip(got, want, strict=True):
        g = np.zeros(np.shape(w)) if g is None else g
        assert np.shape(g) == np.shape(w), f"{what}: shape {np.shape(g)}, not {np.shape(w)}"
        scale = 1 + np.max(np.abs(w), initial=0)
        np.testing.assert_allclose(g, w, rtol=0, atol=tolerance * scale, err_msg=what)


# --- The laws of a rule at a point ----------


def value_of_the_body_is_the_functions(rule: Rule, point: Point) -> None:
    if not isinstance(rule, Composed):
        return
    y = point.value(rule.function)
    body = point.value(rule.body)
    _close(body, y, 1e-5 if point.single else 1e-12, "value of the body")
    for b, f in zip(outputs(body), outputs(y), strict=True):
        assert dtype_of(b).kind == dtype_of(f).kind, f"the body gives {dtype_of(b)}, the function {dtype_of(f)}"


def pushforward_agrees_with_differences(rule: Rule, point: Point) -> None:
    """Along all leaves at once and, where there are several, along each alone."""
    if isinstance(rule, Composed) or not point.leaves:
        return
    _, _, dots, _ = _seeded(rule, point)
    directions = [dots]
    if len(dots) > 1:
        directions += [[d if i == k else None for i, d in enumerate(dots)] for k in range(len(dots))]
    if any(np.iscomplexobj(d) for d in dots):
        directions.append([d * 1j if np.iscomplexobj(d) else None for d in dots])
    for direction in directions:
        want, sharp = _difference(rule.function, point.in_double(), direction)
        got = push(rule, point, direction)
        _close(got, want, 2e-3 if point.single else 1e-10 if sharp else 1e-7, "pushforward")
        for g, y in zip(outputs(got), outputs(point.value(rule.function)), strict=True):
            assert np.iscomplexobj(y) or not np.iscomplexobj(g), "a real output has a complex tangent"


def pullback_is_the_adjoint_of_the_pushforward(rule: Rule, point: Point) -> None:
    """Re⟨ȳ, Jẋ⟩ = Re⟨Jᵀȳ, ẋ⟩, for each leaf by itself, and for each of several outputs by itself."""
    if isinstance(rule, Composed) or not point.leaves:
        return
    _, _, dots, y_bar = _seeded(rule, point)
    pull = puller(rule, point)
    for bar, (k, dot) in itertools.product(_one_output_used(y_bar), enumerate(dots)):
        x_bar = pull(bar)[k]
        y_dot = push(rule, point, [dot if i == k else None for i in range(len(dots))])
        forward, backward = _inner(bar, y_dot), _inner(x_bar, dot)
        scale = 1 + sum(float(np.sum(np.abs(part))) for part in outputs(y_dot) if part is not None)
        tolerance = (1e-4 if point.single else 1e-11) * scale
        assert abs(forward - backward) <= tolerance, f"leaf {k}: ⟨ȳ,Jẋ⟩ = {forward!r}, ⟨Jᵀȳ,ẋ⟩ = {backward!r}"


def cotangents_have_the_shapes_of_the_arguments(rule: Rule, point: Point) -> None:
    if isinstance(rule, Composed):
        return
    _, y, dots, y_bar = _seeded(rule, point)
    for k, (x_bar, x) in enumerate(zip(puller(rule, point)(y_bar), point.leaves, strict=True)):
        assert x_bar is not None, f"leaf {k} is drawn from a domain, but no cotangent reaches it"
        assert np.shape(x_bar) == np.shape(x), f"leaf {k}: cotangent of shape {np.shape(x_bar)} for {np.shape(x)}"
        assert dtype_of(x_bar).kind in "fcbi", f"leaf {k}: cotangent of dtype {dtype_of(x_bar)}"
    if point.leaves:
        for y_dot, part in zip(outputs(push(rule, point, dots)), outputs(y), strict=True):
            if y_dot is None:
                assert not is_differentiable(part), "an output of real or complex numbers has no tangent"
                continue
            assert np.shape(y_dot) == np.shape(part), f"tangent of shape {np.shape(y_dot)} for {np.shape(part)}"


def together_is_the_function_and_its_pullback(rule: Rule, point: Point) -> None:
    if not isinstance(rule, General) or rule.together is None or not point.leaves:
        return
    _, y, _, y_bar = _seeded(rule, point)
    args, kwargs = point.call()
    value, pull = rule.together(*args, **kwargs)
    np.testing.assert_array_equal(value, y, err_msg="value of the two together")
    assert type(value) is type(y), f"together gives a {type(value)}, the function a {type(y)}"
    wanted = rule.pullback(y, *args, **kwargs)(y_bar)
    for _ in range(2):
        _close(pull(y_bar), wanted, 1e-14, "pull of the two together")


def inputs_are_not_changed(rule: Rule, point: Point) -> None:
    """Arguments, result and cotangent are read-only here, so that a rule which writes into them raises."""
    if isinstance(rule, Composed) or not point.leaves:
        return
    _, _, dots, y_bar = _seeded(rule, point)
    try:
        puller(rule, point)(y_bar)
        push(rule, point, dots)
    except ValueError as error:
        if "read-only" in str(error):
            raise AssertionError("the rule writes into what it was given") from error
        raise


def pull_can_be_called_twice(rule: Rule, point: Point) -> None:
    if isinstance(rule, Composed):
        return
    _, _, _, y_bar = _seeded(rule, point)
    pull = puller(rule, point)
    once = [np.array(x_bar) for x_bar in pull(y_bar)]
    for first, second in zip(once, pull(y_bar), strict=True):
        np.testing.assert_array_equal(first, second, err_msg="the second call of pull gives something else")


def zero_cotangent_gives_zero(rule: Rule, point: Point) -> None:
    if isinstance(rule, Composed) or not point.leaves:
        return
    y = point.value(rule.function)
    nothing = map_outputs(lambda part: zeros(part) if is_differentiable(part) else None, y)
    for k, x_bar in enumerate(puller(rule, point)(nothing)):
        assert not np.any(x_bar), f"leaf {k}: a zero cotangent gives {x_bar!r}"
    for y_dot in outputs(push(rule, point, [zeros(x) for x in point.leaves])):
        assert y_dot is None or not np.any(y_dot), f"zero tangents give {y_dot!r}"


LAWS: list[Callable[[Rule, Point], None]] = [
    value_of_the_body_is_the_functions,
    cotangents_have_the_shapes_of_the_arguments,
    pushforward_agrees_with_differences,
    pullback_is_the_adjoint_of_the_pushforward,
    inputs_are_not_changed,
    pull_can_be_called_twice,
    together_is_the_function_and_its_pullback,
    zero_cotangent_gives_zero,
]


# --- Differences ----------

WEIGHTS = {1: 45 / 60, 2: -9 / 60, 3: 1 / 60}  # central, exact to the sixth order


def _difference(function: Any, point: Point, dots: Sequence[Any]) -> tuple[Any, bool]:
    """The derivative along `dots` of the function's value, and whether it is known to the last digits.

    A complex step has no cancellation, but is right only for functions that are real-analytic and take complex
    numbers. It is believed where it agrees with the difference quotient.
    """

    def shifted(t: Any) -> Any:
        return point.value(function, [x if d is None else x + t * d for x, d in zip(point.leaves, dots, strict=True)])

    total: Any = None
    for steps, weight in WEIGHTS.items():
        ahead, behind = shifted(steps * STEP), shifted(-steps * STEP)
        term = map_outputs(lambda a, b, w=weight: w / STEP * _rise(a, b), ahead, behind)
        total = term if total is None else add(total, term)
    if any(np.iscomplexobj(x) for x in point.leaves):
        return total, False
    try:
        stepped = shifted(1e-30j)
        if any(not np.iscomplexobj(part) for part in outputs(stepped)):
            return total, False
        if any(np.iscomplexobj(part) for part in outputs(point.value(function))):
            return total, False
        sharp = map_outputs(lambda part: np.imag(part) / 1e-30, stepped)
        _close(sharp, total, 1e-6, "complex step")
    except Exception:  # whatever a function says to a complex number that it does not expect
        return total, False
    return sharp, True


def _rise(ahead: Any, behind: Any) -> Any:
    """ahead - behind; nothing between equal infinities, which a mask can leave standing."""
    return np.where(np.equal(ahead, behind), 0.0, np.subtract(ahead, behind, dtype=np.result_type(ahead, float)))


# --- The laws of a rule's form ----------


def partials_fit_the_function(rule: Rule) -> None:
    if not isinstance(rule, Elementwise):
        return
    count = getattr(rule.function, "nin", len(rule.at))
    assert len(rule.partials) == count == len(rule.at), f"{len(rule.partials)} partials for {count} arguments"
    allowed = {"y", "x"} if count == 1 else {"y", *"abc"[:count]}
    for partial in rule.partials:
        names = set(inspect.signature(partial).parameters) if callable(partial) else set()
        assert names <= allowed, f"a partial names {sorted(names - allowed)}; it may name {sorted(allowed)}"


def formulas_name_the_functions_parameters(rule: Rule) -> None:
    """The parameters of each formula are NumPy's, in NumPy's places and with NumPy's defaults."""
    if isinstance(rule, Composed):
        formulas, skip = [rule.body], 0
    elif isinstance(rule, General):
        formulas, skip = [rule.pullback, rule.pushforward], 1
    elif isinstance(rule, Linear):
        formulas, skip = list(rule.adjoints), 1
    else:
        return
    lists = [list(inspect.signature(formula).parameters.values())[skip:] for formula in formulas]
    if isinstance(rule, General) and rule.together is not None:
        lists.append(list(inspect.signature(rule.together).parameters.values()))
    for other in lists[1:]:
        assert [p.name for p in other] == [p.name for p in lists[0]], "the formulas do not have the same parameters"
    theirs = _parameters(rule.function)
    for parameter in itertools.chain(*lists):
        passed_on = (
            theirs is not None and getattr(theirs.get(parameter.name), "kind", None) is parameter.VAR_KEYWORD
        )  # np.apply_along_axis(f, …, **kwargs)
        assert parameter.kind is not parameter.VAR_KEYWORD or passed_on, f"a formula swallows **{parameter.name}"
    if theirs is None:
        return
    names = list(theirs)
    takes_more = any(p.kind is p.VAR_KEYWORD for p in theirs.values())  # np.add.reduce(array, axis, dtype, **kwargs)
    for formula in lists:
        for place, parameter in enumerate(formula):
            if takes_more and parameter.name not in theirs:
                continue
            if place < len(names) and theirs[names[place]].kind is parameter.POSITIONAL_ONLY:
                continue  # nobody can say its name
            assert parameter.name in theirs, f"{parameter.name} is not a parameter of the function ({names})"
            if parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
                assert names.index(parameter.name) == place, f"{parameter.name} is not argument {place} ({names})"
            default = theirs[parameter.name].default
            if default is inspect.Parameter.empty or default is np._NoValue or "no value" in repr(default):
                continue
            assert parameter.default == default or (parameter.default is default), (
                f"the default of {parameter.name} is {default!r}, not {parameter.default!r}"
            )


def _parameters(function: Any) -> dict[str, inspect.Parameter] | None:
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # a function written in C, in a NumPy that gives no signature
        return None


def differentiable_arguments_exist(rule: Rule) -> None:
    if isinstance(rule, WithArguments) and not isinstance(rule.args, slice):
        assert max(rule.args) < len(rule.parameters), f"args={rule.args}, but the formula has {len(rule.parameters)}"
    if isinstance(rule, Linear) and not isinstance(rule.args, slice):
        assert len(rule.adjoints) == len(rule.args), f"{len(rule.adjoints)} adjoints for args={rule.args}"


def it_is_tested_somewhere(rule: Rule) -> None:
    if isinstance(rule, (Elementwise, WithArguments, Composed)):
        assert rule.at, "the rule lists no points"


FORM_LAWS: list[Callable[[Rule], None]] = [
    partials_fit_the_function,
    formulas_name_the_functions_parameters,
    differentiable_arguments_exist,
    it_is_tested_somewhere,
]


# --- Running them ----------


def check(rule: Rule, point: Point, laws: Sequence[Callable[[Rule, Point], None]] = LAWS) -> None:
    """Run the laws of a rule at a point; the first that fails is named in the error."""
    with np.errstate(all="ignore"):
        for law in laws:
            try:
                law(rule, point)
            except Exception as error:
                error.add_note(f"law: {law.__name__}; rule: {rule.name}; point: {point.label}")
                raise


def check_form(rule: Rule) -> None:
    for law in FORM_LAWS:
        try:
            law(rule)
        except AssertionError as error:
            error.add_note(f"law: {law.__name__}; rule: {rule.name}")
            raise


def broken(rule: Rule) -> set[str]:
    """The names of all laws that the rule breaks somewhere."""
    names = set()
    for form_law in FORM_LAWS:
        try:
            form_law(rule)
        except AssertionError:
            names.add(form_law.__name__)
    for point, law in itertools.product(points(rule), LAWS):
        try:
            check(rule, point, [law])
        except Exception:
            names.add(law.__name__)
    return names
