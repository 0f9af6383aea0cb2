"""`compile(f)`: the object that stands for a function and all its native derivatives."""

from __future__ import annotations

import functools
import inspect
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray

from retrograde.compiler.settings import Settings
from retrograde.errors import CompilationError, InputError
from retrograde.trace.creation import contains_traced
from retrograde.trace.interception import originals
from retrograde.trace.running import Native, NativeGradient

if TYPE_CHECKING:
    from retrograde.compiler.bridge import Bridge
    from retrograde.compiler.derivatives import Role
    from retrograde.compiler.explain import Explanation
    from retrograde.compiler.fingerprint import Fingerprint
    from retrograde.compiler.outside import Outside
    from retrograde.compiler.specialisation import Gradient, Specialisation

_PROGRAMS = {"primal": ("J", 0), "pullback": ("T", 0), "jvp": ("J", 1), "hvp": ("T", 1)}


def compile(
    f: Callable[..., Any] | None = None,
    /,
    *,
    fastmath: bool = False,
    parallel: bool = False,
    vectormath: bool = True,
    cache: bool = True,
    checkpoint: bool | int = False,
    boundscheck: bool = False,
) -> Any:
    """The function `f` with native code behind its value and all its derivatives.

    Args:
        f: a Python function in the language of `compile` (docs/compile.md), or a function that numba has jitted
            already. Without it, `compile(...)` is a decorator.
        fastmath: let the compiler reorder and simplify floating-point arithmetic.
        parallel: run the iterations of `numba.prange` on several threads.
        vectormath: let derivatives use elementary functions that a loop can vectorise, within few ulps of numba's own,
            and add up in several partial sums.
        cache: keep what is compiled on disk, for other processes and later days.
        checkpoint: keep the state of long loops at few of their steps only, and run the others again for a gradient, in
            segments of so many steps; True for the square root of the number of steps.
        boundscheck: raise IndexError where an index lies outside of its axis, in the value and in derivatives. Without
            it that is only looked for where it costs nothing, and memory beyond an array may be read and written.

    Returns:
        A `Compiled`. Called like `f`, it gives what numba's own code of `f` gives, and writes into its arguments as
        `f` does. It may stand inside any function that is differentiated; transforms of it itself run natively.

    Raises:
        InputError: `f` is no Python function, or its source cannot be read; a keyword has a value that is not there.
        LanguageError: (at the first call with arguments of new types) `f` has something that is not in the language.
        MissingExtraError: (at the first call) numba is not installed.
    """
    settings = Settings(fastmath, parallel, vectormath, cache, checkpoint, boundscheck)
    if f is None:
        return functools.partial(_compiled, settings=settings)
    return _compiled(f, settings)


def _compiled(f: Callable[..., Any], settings: Settings) -> Compiled:
    from retrograde.compiler.source import python_function

    function = python_function(f)
    if function is None:
        raise InputError(
            f"compile takes a Python function; it was given {getattr(f, '__name__', None) or type(f).__name__}",
            "the function itself; of a class the method, which takes no self",
        )
    return Compiled(function, settings)


class Compiled(Native):
    """A function with native code behind its value and all its derivatives; made by `compile`."""

    def __init__(self, function: Any, settings: Settings) -> None:
        from retrograde.compiler.source import source_of

        self._function = function
        self._settings = settings
        self._source = source_of(function)
        self._signature = inspect.signature(function)
        parameters = self._signature.parameters.values()
        # The parameters' names, where a call with as many positional arguments needs no binding.
        self._positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        self._is_plain = len(self._positional) == len(parameters)
        self._specialisations: dict[Any, Specialisation] = {}
        self._by_sorts: dict[tuple[Any, ...], Specialisation] = {}
        self._bridges: dict[int, Bridge] = {}
        self._own_code: Any = None
        self._read: tuple[Outside, Fingerprint | None] | None = None
        functools.update_wrapper(self, function)
        self.__wrapped_python__ = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        has_traced = any(map(contains_traced, args)) or any(map(contains_traced, kwargs.values()))
        of, arguments = self._bound(args, kwargs)
        found = None if has_traced else self._by_numba(of, arguments.values())
        if found is not None:
            return found[0]
        from retrograde.compiler.calling import call_beyond_numba, call_traced  # now that all is loaded

        leaves = self._leaves(of, arguments)
        itself = functools.partial(self._itself, of, list(arguments))
        if has_traced:
            return call_traced(of, functools.partial(self._bridge, of), arguments, leaves, itself)
        return call_beyond_numba(of, arguments, leaves, itself)

    def _by_numba(self, of: Specialisation, args: Iterable[Any]) -> tuple[Any] | None:
        """The value by numba's code of the function; None where numba cannot compile it."""
        if not of.is_beyond_numba:
            try:
                return (self._primal(of)(*map(_unboxed, args)),)
            except CompilationError:
                of.is_beyond_numba = True
            except NotImplementedError as error:
                # An array with gaps in another shape, which NumPy copies. Nothing has been written yet.
                if str(error) != "incompatible shape for array" or of.written:
                    raise
        return None

    def _itself(self, of: Specialisation, names: list[str], args: list[Any]) -> Any:
        """What the function itself gives for plain arguments."""
        found = self._by_numba(of, args)
        if found is not None:
            return found[0]
        bound = inspect.BoundArguments(self._signature, OrderedDict(zip(names, args, strict=True)))
        with originals():
            return self._function(*bound.args, **bound.kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    @property
    def _numba_type_(self) -> Any:
        """What numba takes the object for inside of other functions: its own code of the function."""
        from retrograde.compiler.native import numba

        return numba().typeof(self._primal(None).dispatcher)

    def __repr__(self) -> str:
        return f"<compiled {self._source.name!r}>"

    def __reduce__(self) -> Any:
        found: Any = sys.modules.get(self._function.__module__)
        for name in self._function.__qualname__.split("."):
            found = getattr(found, name, None)
        # Under its own name as a decorator leaves it, or made again of the function that has the name.
        return self._function.__qualname__ if found is self else (Compiled, (self._function, self._settings))

    # --- looking inside ------------------------------------------------------------------------------------------

    def source(self, what: str = "pullback", *args: Any) -> str:
        """The text of a program: "primal", "pullback", "jvp" or "hvp".

        Args:
            what: which program.
            *args: arguments of the types that are meant; not needed once the function has been called.
        """
        if what not in _PROGRAMS:
            raise InputError(f"there is no program {what!r}", ", ".join(map(repr, _PROGRAMS)))
        specialisation = self._meant(args, f"source({what!r}, *args)")
        with originals():
            return specialisation.text(*_PROGRAMS[what])

    def explain(self, *args: Any) -> Explanation:
        """What has a derivative, what the pullback keeps and what it does again, and the memory that it takes.

        Args:
            *args: arguments of the types and sizes that are meant; not needed after a derivative of the function.

        Returns:
            An `Explanation`, to be printed or asked.
        """
        specialisation = self._meant(args, "explain(*args)")
        if args:
            leaves = self._leaves(specialisation, self._bound(args, {})[1])
            specialisation.note_sizes(leaves)
        with originals():
            return specialisation.explanation()

    def _meant(self, args: tuple[Any, ...], way: str) -> Specialisation:
        """The specialisation for the types of some arguments, or that of the last call."""
        if args:
            return self._bound(args, {})[0]
        if not self._specialisations:
            raise InputError("the types of the arguments are not known yet", way, "a call before")
        return list(self._specialisations.values())[-1]

    # --- specialisations -----------------------------------------------------------------------------------------

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Specialisation, dict[str, Any]]:
        """The specialisation for some arguments, and the arguments by name."""
        _load()
        from retrograde.compiler.arguments import key_of, kind_of, sort_of
        from retrograde.compiler.specialisation import Specialisation

        sorts = None
        if self._is_plain and len(args) == len(self._positional) and not kwargs:
            arguments = dict(zip(self._positional, args, strict=True))
            sorts = tuple(map(sort_of, args))
            known = self._by_sorts.get(sorts)
            if known is not None:
                return known, arguments
        else:
            bound = self._signature.bind(*args, **kwargs)
            bound.apply_defaults()
            arguments = dict(bound.arguments)
        kinds = {name: kind_of(value, name) for name, value in arguments.items()}
        key = tuple(key_of(kind) for kind in kinds.values())
        found = self._specialisations.get(key)
        if found is None:
            with originals():  # it may import more of the compiler
                outside, fingerprint = self._outside()
                found = Specialisation(self._source, kinds, self._settings, fingerprint=fingerprint, outside=outside)
            self._specialisations[key] = found
        if sorts is not None and None not in sorts:
            self._by_sorts[sorts] = found
        return found, arguments

    def _primal(self, specialisation: Specialisation | None) -> Any:
        """numba's own code of the function."""
        from retrograde.compiler.native import primal_dispatcher, teach

        if self._own_code is None:
            outside, fingerprint = self._outside()
            key = fingerprint.key if fingerprint is not None else None
            with originals():  # numba looks at its own tables when it is first used
                self._own_code = primal_dispatcher(self._function, self._settings, key, outside)
        if specialisation is not None:
            with originals():
                teach(specialisation.reached())
        return self._own_code

    def _outside(self) -> tuple[Outside, Fingerprint | None]:
        """What the function reads from outside when it is compiled first, and the key of that."""
        if self._read is None or (self._own_code is None and not self._specialisations):
            from retrograde.compiler.fingerprint import Fingerprint
            from retrograde.compiler.outside import Outside

            with originals():
                fingerprint = Fingerprint(self._function) if self._settings.cache else None
            self._read = Outside(self._function), fingerprint
        return self._read

    def _leaves(self, specialisation: Specialisation, arguments: dict[str, Any]) -> list[Any]:
        from retrograde.compiler.arguments import leaves_of

        if specialisation.is_flat:
            return [_unboxed(value) for value in arguments.values()]
        kinds = specialisation.arguments
        return [_unboxed(leaf) for name, value in arguments.items() for leaf in leaves_of(value, kinds[name])]

    def _bridge(self, specialisation: Specialisation) -> Bridge:
        from retrograde.compiler.bridge import Bridge

        if id(specialisation) not in self._bridges:
            self._bridges[id(specialisation)] = Bridge(specialisation)
        return self._bridges[id(specialisation)]

    def _leaves_at(
        self, of: Specialisation, arguments: dict[str, Any], places: tuple[int, ...]
    ) -> frozenset[int] | None:
        """The numbers of the leaves of some arguments; None if those are all that have derivatives."""
        from retrograde.compiler.arguments import flat_types

        found: set[int] = set()
        start = 0
        for place, name in enumerate(arguments):
            count = len(list(flat_types(of.arguments[name])))
            if place in places:
                found.update(range(start, start + count))
            start += count
        return None if found >= set(of.inputs) else frozenset(found)

    # --- transforms of the function itself -----------------------------------------------------------------------

    def described(self, place: int) -> tuple[str, str]:
        """The names of the function and of its positional argument number `place`."""
        names = list(self._signature.parameters)
        return self._source.name, names[min(place, len(names) - 1)]

    def native_gradient(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], places: tuple[int, ...]
    ) -> NativeGradient | None:
        """The value and the cotangents of some positional arguments, without any tracing (see trace/running.py)."""
        of, arguments = self._bound(args, kwargs)
        if places not in of.gradients:
            of.gradients[places] = self._gradient(of, arguments, places)
        known = of.gradients[places]
        if known is None:
            return None
        leaves = self._leaves(of, arguments)
        given: dict[Any, Any] = dict(zip(of.leaves, leaves, strict=True))
        given["y_bar", 0] = 1.0
        found = of.evaluate("T", 0, given, known.wanted)
        bars = [found.get(("x_bar", i)) if has_path else None for i, has_path in enumerate(known.has_path)]
        if not of.is_flat:
            from retrograde.compiler.calling import by_argument

            bars = by_argument(of, arguments, bars)
        return NativeGradient(found["y", 0], bars[: len(args)])

    def _gradient(self, of: Specialisation, arguments: dict[str, Any], places: tuple[int, ...]) -> Gradient | None:
        """What is known of the gradient; None where the result is not one real number: the transform says what is wrong
        with that."""
        from retrograde.compiler.specialisation import Gradient
        from retrograde.compiler.variant import Which

        if not of.outputs or of.structure != of.result_types[0]:
            return None
        if of.result_types[0].is_array or of.result_types[0].is_complex:
            return None
        wanted = self._leaves_at(of, arguments, places)
        reached = of.program(Which("T", 0, False, wanted)).reached
        return Gradient(wanted, [name in reached for name in of.params])

    def native_products(self, args: tuple[Any, ...], kwargs: dict[str, Any], directions: list[Any]) -> list[Any] | None:
        """The products of the Hessian with many directions, in one native loop (see trace/running.py)."""
        from retrograde.compiler.examples import Examples
        from retrograde.compiler.types import Type

        of, arguments = self._bound(args, kwargs)
        kinds = list(of.arguments.values())[: len(args)]
        if not of.result_types or of.structure != of.result_types[0] or of.result_types[0] != Type("float64"):
            return None
        if not all(isinstance(kind, Type) and kind.dtype == "float64" for kind in kinds):
            return None
        leaves = self._leaves(of, arguments)
        given: dict[Any, Any] = {("x", i): leaf for i, leaf in enumerate(leaves)}
        given["y_bar", 0] = 1.0
        along: dict[Any, Any] = {}
        for i, d in enumerate(directions):
            if d is not None:
                if np.shape(d)[1:] != np.shape(leaves[i]) or getattr(d, "dtype", None) != np.float64:
                    return None
                along["dot", 0, ("x", i)] = d
        if not along:
            return None
        size = len(next(iter(along.values())))
        wanted = self._leaves_at(of, arguments, tuple(range(len(args))))
        found = of.evaluate("T", 1, given | along, wanted, Examples(size, frozenset(along)))
        if not np.isfinite(found["y", 0]):
            return None  # the transform says what is wrong with that
        zeros = [np.zeros((size, *np.shape(args[i]))) for i in range(len(args))]
        return [found.get(("dot", 0, ("x_bar", i)), zeros[i]) for i in range(len(args))]

    def native_tangents(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], directions: dict[int, Any]
    ) -> tuple[Any, Any] | None:
        """The value, and its tangents along many directions, in one native loop (see trace/running.py)."""
        of, arguments = self._bound(args, kwargs)
        places = tuple(directions)
        if places not in of.tangents:
            of.tangents[places] = self._tangents(of, arguments, places)
        known = of.tangents[places]
        if known is None:
            return None
        from retrograde.compiler.examples import Examples

        given: dict[Any, Any] = dict(zip(of.leaves, self._leaves(of, arguments), strict=True))
        given |= zip(known, directions.values(), strict=True)
        size = len(directions[places[0]])
        found = of.evaluate("J", 1, given, None, Examples(size, frozenset(known)))
        return found["y", 0], found["dot", 0, ("y", 0)]

    def _tangents(self, of: Specialisation, arguments: dict[str, Any], places: tuple[int, ...]) -> list[Role] | None:
        """The roles of the tangents of some arguments; None where one of them, or the result, is no float or array of
        floats."""
        from retrograde.compiler.arguments import flat_types
        from retrograde.compiler.types import Type

        if not of.is_smooth or of.structure != of.result_types[0] or of.result_types[0].dtype != "float64":
            return None
        kinds = [of.arguments[name] for name in arguments]
        if not all(isinstance(kinds[place], Type) and kinds[place].dtype == "float64" for place in places):
            return None
        starts = [sum(len(list(flat_types(kind))) for kind in kinds[:place]) for place in places]
        return [("dot", 0, ("x", start)) for start in starts]


@functools.cache
def _load() -> None:
    """Import the compiler and numba, whose tables are to hold NumPy's own functions, not what stands for them now."""
    with originals():
        import_module("retrograde.compiler.specialisation")
        import_module("retrograde.compiler.native").numba()


def _unboxed(value: Any) -> Any:
    """A 0-d array as the number that it is."""
    return value[()] if type(value) is ndarray and value.ndim == 0 else value
