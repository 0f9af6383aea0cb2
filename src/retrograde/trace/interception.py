"""Switching the stand-ins of functions on while a transform runs, and off again.

`np.array([x[0], 2.0])`, `np.sum([x[0], x[1]])` and `math.sin(x)` never ask a traced value what to do. They are
therefore replaced as attributes of their modules for as long as some transform runs, and in the globals of the user's
own modules, where they were imported by name. With arguments that are not traced a stand-in calls the original at
once, whoever called it. Rejected: an ndarray subclass that poisons its buffer (not reliably loud), and rewriting the
user's source (does not reach what it calls). See docs/decisions.

Most transforms read a few attributes of NumPy and none of `math`; to put a hundred functions in their places and back
would cost more than their arithmetic. So a module only gets another class while a transform runs, whose properties
answer for the functions (`_Module`), without a line of Python. The functions themselves take their places when
somebody looks into the module's dictionary, or writes to it.

A program may have put a function of its own in the place of one of these (`mock.patch`). It is called there, and none
of ours. To look at a hundred names in every transform would cost as much as to replace them; so after the first
transform a module keeps a class that notes when it is written to, and nothing else.
"""

from __future__ import annotations

import contextvars
import functools
import gc
import importlib
import math
import operator
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import thread
from contextlib import contextmanager
from threading import get_ident
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
from numpy.polynomial import polyutils

from retrograde.trace import early_bound, fourier, sparse_matrices, special
from retrograde.trace import level as levels
from retrograde.trace.elements import vectorized
from retrograde.trace.iteration import enumerated
from retrograde.trace.stand_ins import LINALG, NUMPY, POLYUTILS, STAND_INS, STRIDES, Table
from retrograde.trace.stand_ins_for_math import MATH


class Options:
    """What can be switched in the library.

    Attributes:
        intercept: take over `np.array`, `np.asarray`, `math.*` and the like while a transform runs. Switched off,
            they raise an error when they are given a traced value.
        lines: note the line of every operation, so that an error in the derivative of one names it. It makes each
            operation several times as slow, and is meant for finding such an error.
    """

    __slots__ = ("intercept", "lines")

    def __init__(self) -> None:
        self.intercept = True
        self.lines = False

    def __repr__(self) -> str:
        return f"Options(intercept={self.intercept}, lines={self.lines})"


options = Options()

# What was replaced, to be put back where it still is: (dictionary, originals, stand-ins) for each.
_replaced: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = []


class _Module:
    """The functions of one module that are replaced, prepared so that a transform costs two updates of a dictionary.

    At first the module is only of another class, whose properties hand the stand-ins out. That is one word in memory
    to write, where the names and functions in a dictionary are hundreds, and out of the cache when arrays are large.
    """

    __slots__ = ("before", "is_changed", "kind", "module", "names", "ours", "parted", "patched", "table", "watched")

    def __init__(self, module: ModuleType, table: Table) -> None:
        self.module = module
        self.names = names = vars(module)
        # Names that are one object with the dictionary's are found twice as fast.
        self.table = {sys.intern(name): function for name, function in table.items()}
        self.before = {name: names[name] for name in table}
        # Whether somebody may have written to `names` since we looked; the functions that are his own; all others.
        self.is_changed = False
        self.patched: frozenset[str] = frozenset()
        self.ours = self.table
        self.watched = self._class_between()
        self.kind = self._class_while_it_runs()
        self.parted = self._class_of_threads()

    def take_over(self) -> None:
        """Let the module hand the stand-ins out."""
        kind = type(self.module)
        if self.is_changed or kind is not self.watched:
            self._look()
        if self.patched or kind not in (self.watched, ModuleType):
            # Some functions are not NumPy's, or somebody else has given the module a class of his own.
            self.replace()
        else:
            _set(self.module, "__class__", self.parted if _compiling else self.kind)

    def replace(self) -> None:
        """Replace the functions in the module itself."""
        # Noted before it is done: an interrupt in between restores what is there anyway.
        _replaced.append((self.names, self.before, self.table))
        self.names.update(self.ours)

    def settle(self) -> None:
        """`replace`, unless another thread has done so, or ended the last transform."""
        with _settling:
            if type(self.module) is self.kind:
                self.replace()
                _set(self.module, "__class__", self.watched)

    def _look(self) -> None:
        """Find out which functions somebody has replaced by his own."""
        self.is_changed = False
        for name, stand_in in self.table.items():
            if self.names.get(name) is stand_in:
                self.names[name] = self.before[name]  # who patched it within a transform has restored it after that
        mine = [name for name, original in self.before.items() if self.names.get(name) is not original]
        self.patched = frozenset(mine)
        self.ours = {name: function for name, function in self.table.items() if name not in self.patched}

    def _written(self, name: str, value: Any) -> Any:
        """What to write for the value, where somebody puts a function back that he has found there."""
        self.is_changed = True
        stand_in = self.table.get(name)
        if stand_in is not None:
            if _is_on and value is self.before[name]:
                return stand_in
            if not _is_on and value is stand_in:
                return self.before[name]
        return value

    def _class_between(self) -> type[ModuleType]:
        """The class of the module after a transform: all it does is to note what is written."""

        class Module(ModuleType):
            @property  # type: ignore[misc]
            def __dict__(module) -> dict[str, Any]:  # type: ignore[override]
                self.is_changed = True  # who looks into it may write to it
                return self.names

            def __setattr__(module, name: str, value: Any) -> None:
                _set(module, name, value if name == "__class__" else self._written(name, value))

            def __delattr__(module, name: str) -> None:
                self.is_changed = True
                ModuleType.__delattr__(module, name)

            def __reduce__(module) -> Any:
                return importlib.import_module, (module.__name__,)

        Module.__name__ = Module.__qualname__ = ModuleType.__name__
        return Module

    def _class_while_it_runs(self) -> type[ModuleType]:
        """The class of the module while a transform runs, which hands the stand-ins out."""

        class Module(ModuleType):
            @property  # type: ignore[misc]
            def __dict__(module) -> dict[str, Any]:  # type: ignore[override]
                self.settle()
                self.is_changed = True
                return self.names

            def __setattr__(module, name: str, value: Any) -> None:
                self.settle()
                setattr(module, name, value)

            def __delattr__(module, name: str) -> None:
                self.settle()
                delattr(module, name)

            def __reduce__(module) -> Any:
                return importlib.import_module, (module.__name__,)

        Module.__name__ = Module.__qualname__ = ModuleType.__name__
        for name in self.table:
            # A property is asked before the module's dictionary is; `get` is given the module for its default.
            setattr(Module, name, property(functools.partial(self.table.get, name)))
        return Module

    def _class_of_threads(self) -> type[ModuleType]:
        """While some threads compile (`originals`): these get the originals, which stand in the module itself then."""
        table, names = self.table, self.names

        class Module(ModuleType):
            @property  # type: ignore[misc]
            def __dict__(module) -> dict[str, Any]:  # type: ignore[override]
                self.is_changed = True
                return names if get_ident() in _compiling else names | self.ours

            def __setattr__(module, name: str, value: Any) -> None:
                self.is_changed = True
                names[name] = value

            def __delattr__(module, name: str) -> None:
                self.is_changed = True
                del names[name]

            def __reduce__(module) -> Any:
                return importlib.import_module, (module.__name__,)

        def of_thread(name: str) -> property:
            return property(lambda _: names[name] if get_ident() in _compiling else table[name])

        Module.__name__ = Module.__qualname__ = ModuleType.__name__
        for name in table:
            setattr(Module, name, of_thread(name))
        return Module


# A finaliser may read an attribute while this is held.
_settling = threading.RLock()


# `_set(module, "__class__", kind)`, whatever the class of the module says of attributes.
_set = ModuleType.__setattr__


_modules = [
    _Module(np, NUMPY),
    _Module(np.linalg, LINALG),
    _Module(math, MATH),
    _Module(np.lib.stride_tricks, STRIDES),
]
_found: dict[int, tuple[int, tuple[str, ...]]] = {}
_is_on = False
_is_numba_told = False
_thresholds: tuple[int, int, int] | None = None  # as they were before, while they are raised
_PATIENT = 100_000  # allocations between two collections while a transform runs
_submit = thread.ThreadPoolExecutor.submit


def _submit_in_context(self: Any, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
    """`submit`, whose work knows the levels, parameters and `ignore` blocks of the thread that submits it."""
    if not levels.ACTIVE:
        return _submit(self, fn, *args, **kwargs)
    return _submit(self, contextvars.copy_context().run, fn, *args, **kwargs)


_start = threading.Thread.start
# Whose threads wait for work of everybody, who hands his context on with it.
_POOLS = ("concurrent.futures", "multiprocessing", "joblib")


def _start_in_context(self: threading.Thread) -> None:
    """`Thread.start`, whose target knows the levels, parameters and `ignore` blocks of the thread that starts it."""
    target = getattr(self, "_target", None)
    if levels.ACTIVE and not str(getattr(target, "__module__", None)).startswith(_POOLS):
        context, run = contextvars.copy_context(), self.run

        def run_in_context() -> None:
            del self.run  # type: ignore[method-assign]
            context.run(run)

        self.run = run_in_context  # type: ignore[method-assign]
    _start(self)


# Modules of SciPy that somebody may import some day, with what makes their replacements then.
_AWAITED: dict[str, Callable[[Any], dict[str, Any]]] = {
    "scipy.special": special.replacements,
    "scipy.fft": fourier.replacements,
    "scipy.sparse": sparse_matrices.replacements,
}
_noticing = threading.Lock()


def _notice_scipy() -> bool:
    """Prepare the functions of SciPy's modules for being replaced, once somebody has imported these.

    Returns:
        Whether one of them is being imported just now.
    """
    is_waiting = False
    for name in tuple(_AWAITED):
        module = sys.modules.get(name)
        if module is None:
            continue
        if getattr(module.__spec__, "_initializing", False):
            is_waiting = True
            continue
        with _noticing:
            replacements = _AWAITED.pop(name, None)
            if replacements is None:
                continue
            table = replacements(module)
            if not table:
                continue
            STAND_INS.update((id(function.original), function) for function in table.values())
            _modules.append(_Module(module, table))
            _found.clear()
            early_bound.look(STAND_INS, again=True)
    return is_waiting


_is_waiting = False


def _look_around() -> None:
    """Take notice of modules that are new."""
    global _is_waiting
    _is_waiting = _notice_scipy()
    if options.intercept:
        early_bound.look(STAND_INS)


def install() -> None:
    """Take the functions over. Called when the first transform begins, which has looked around (`traceable`)."""
    global _is_on, _thresholds
    if _is_on:
        uninstall()  # what an interrupt has left of an earlier one
    _is_on = True
    _hand_contexts_on()
    if options.intercept:
        _take_over_for_good()
        for own in early_bound.own:
            try:
                unchanged = all(map(operator.is_, own.read(own.names), own.values))
            except KeyError:
                unchanged = False
            if unchanged:
                _replaced.append((own.names, own.before, own.table))
                own.names.update(own.table)
            else:
                _replace_names(own.names, tuple(own.before))
        for switch in _modules:
            if type(switch.module) is switch.watched and not (switch.is_changed or switch.patched):
                _set(switch.module, "__class__", switch.parted if _compiling else switch.kind)
            else:
                switch.take_over()
    if not _is_numba_told and "numba.core.dispatcher" in sys.modules:
        let_numba_compile()
    # A growing tape is all alive: collections find nothing and cost as much as the program itself.
    _thresholds = gc.get_threshold()
    gc.set_threshold(max(_thresholds[0], _PATIENT), *_thresholds[1:])


def uninstall() -> None:
    """Put the originals back. Called when the last transform has ended."""
    global _is_on, _thresholds
    with _settling:
        for switch in _modules:
            if type(switch.module) in (switch.kind, switch.parted):
                _set(switch.module, "__class__", switch.watched)
        while _replaced:
            names, before, table = _replaced[-1]
            for name, stand_in in table.items():
                if names.get(name) is stand_in:  # what was put there meanwhile stays, as everywhere in Python
                    names[name] = before[name]
            _replaced.pop()
    if _thresholds is not None:
        gc.set_threshold(*_thresholds)
        _thresholds = None
    _is_on = False


@functools.cache
def _take_over_for_good() -> None:
    """Take over what is seldom used, and asks whether a transform runs: methods of classes, globals of NumPy's own.

    To put it back each time would cost every transform; and a class that is changed a thousand times is not looked up
    in Python's caches any more.
    """
    np.vectorize.__call__ = vectorized  # type: ignore[method-assign]
    np.ndenumerate.__init__ = enumerated  # type: ignore[method-assign]
    # What code of the same module finds among its globals. `np.r_[x, 1.0]` and `np.c_` are objects, whose class uses
    # the name as NumPy's own module knows it.
    vars(polyutils).update(POLYUTILS)
    type(np.r_).__getitem__.__globals__["array"] = NUMPY["array"]


@functools.cache
def _hand_contexts_on() -> None:
    thread.ThreadPoolExecutor.submit = _submit_in_context  # type: ignore[method-assign]
    threading.Thread.start = _start_in_context  # type: ignore[method-assign]


# The threads that compile, and how often each has begun to; and what was put back in dictionaries for them.
_compiling: dict[int, int] = {}
_put_back: list[tuple[dict[str, Any], dict[str, Any]]] = []


@contextmanager
def originals() -> Iterator[None]:
    """Put the originals back for a moment, for a compiler that looks functions up by their names.

    Modules hand them out to this thread only. In the globals of the user's own modules, which are dictionaries, they
    are there for all threads: those that run a transform meanwhile find that what was imported by name refuses a traced
    value.
    """
    thread = get_ident()
    with levels._switching, _settling:
        if not _compiling:
            _part_threads()
        _compiling[thread] = _compiling.get(thread, 0) + 1
    try:
        yield
    finally:
        with levels._switching, _settling:
            _compiling[thread] -= 1
            if not _compiling[thread]:
                del _compiling[thread]
            if not _compiling:
                _join_threads()


def _part_threads() -> None:
    """The originals in their places, and stand-ins for all threads that do not compile."""
    for switch in _modules:
        if type(switch.module) is switch.kind or _is_settled(switch):
            _set(switch.module, "__class__", switch.parted)
    for names, before, _ in reversed(_replaced):
        _put_back.append((names, {name: names[name] for name in before if name in names}))
        names.update(before)


def _join_threads() -> None:
    """Stand-ins for all threads, as before, unless the last transform has ended meanwhile."""
    for switch in _modules:
        if type(switch.module) is switch.parted:
            _set(switch.module, "__class__", switch.watched if _is_settled(switch) else switch.kind)
    for names, table in reversed(_put_back):
        if any(names is replaced for replaced, *_ in _replaced):
            names.update(table)
    _put_back.clear()


def _is_settled(switch: _Module) -> bool:
    """Whether the stand-ins of a module have been put into it."""
    kinds = (switch.watched, switch.parted)
    return type(switch.module) in kinds and any(names is switch.names for names, *_ in _replaced)


# Where numba looks functions up by their names: as it compiles for `jit`, `vectorize`, `guvectorize`, `cfunc`, loads
# what it has kept, and finds the types in a `stencil`.
_OF_NUMBA = (
    ("numba.core.dispatcher", "Dispatcher", "compile"),
    ("numba.core.compiler", "CompilerBase", "compile_extra"),
    ("numba.core.compiler", "CompilerBase", "compile_ir"),
    ("numba.np.ufunc.ufuncbuilder", "UFuncDispatcher", "compile"),
    ("numba.stencils.stencil", "StencilFunc", "get_return_type"),
)


def let_numba_compile() -> None:
    """Let numba, once it is loaded, compile with the originals in place: it looks NumPy's functions up by their names,
    and keeps for good which function it found."""
    global _is_numba_told
    if _is_numba_told or "numba.core.dispatcher" not in sys.modules:
        return
    numba = sys.modules.get("numba")
    if numba is None or getattr(numba.__spec__, "_initializing", False):
        return  # it is being imported
    _is_numba_told = True
    for module, name, method in _OF_NUMBA:
        owner = getattr(sys.modules.get(module), name, None)
        if hasattr(owner, method):
            setattr(owner, method, _with_originals(getattr(owner, method)))


def _with_originals(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def compile_with_originals(*args: Any, **kwargs: Any) -> Any:
        with originals():
            return method(*args, **kwargs)

    return compile_with_originals


def traceable(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f`, or what stands for it while a transform runs (`gradient(math.sin, x)`)."""
    if _is_waiting or early_bound.looked_at != (len(sys.modules), next(reversed(sys.modules.values()))):
        _look_around()  # nearly all transforms find nothing new
    return STAND_INS.get(id(f), f) if options.intercept else f


def stand_in(function: Any) -> Callable[..., Any] | None:
    """What stands for a function while a transform runs; None if it is not taken over."""
    return STAND_INS.get(id(function))


def replace_in_globals(f: Any) -> None:
    """Take over what the module of `f` imported by name (`from math import sin`)."""
    while not isinstance(f, FunctionType):
        inner = getattr(f, "func", None) or getattr(f, "__func__", None) or getattr(f, "__wrapped__", None)
        if inner is None:
            call = getattr(type(f), "__call__", None)  # noqa: B004  (the function itself is wanted)
            if not isinstance(call, FunctionType):
                return
            inner = call
        f = inner
    names = f.__globals__
    count, found = _found.get(id(names), (-1, ()))
    if count != len(names):
        found = tuple(name for name, value in names.items() if id(value) in STAND_INS)
        _found[id(names)] = (len(names), found)
    if found and options.intercept:
        _replace_names(names, found)


def _replace_names(names: dict[str, Any], found: tuple[str, ...]) -> None:
    table = {name: STAND_INS[id(names[name])] for name in found if id(names.get(name)) in STAND_INS}
    if table:
        _replaced.append((names, {name: names[name] for name in table}, table))
        names.update(table)


levels.on_first_transform = install
levels.on_last_transform = uninstall
