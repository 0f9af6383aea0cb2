"""Levels: one for each running transform, and what the running thread (or task) knows of them.

A traced value belongs to the level of the transform that made it. An operation belongs to the *highest* level among
its operands; operands of lower levels are constants to it, and are themselves traced when the primal is computed.
That alone keeps nested derivatives apart, in any mixture of modes.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import math
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

from retrograde.errors import EndedError, is_ours

if TYPE_CHECKING:
    from retrograde.trace.call import Binding, Operand
    from retrograde.trace.handle import Traced

# A node of a tape is a tuple `(number, op, *links of the parents, *residuals)`. Tuples are the cheapest thing to make
# in Python, and one that holds nothing cyclic is dropped from the collector's lists.
Node = tuple[Any, ...]

_serial = itertools.count(1).__next__


class Level:
    """One transform.

    Attributes:
        records: whether this is reverse mode, where operations append nodes.
        is_swept: whether it records for a sweep that a transform is going to make.
        pushes: whether this is forward mode, where the link of a value is its tangent.
        calls_hooks: whether its cotangents pass through hooks.
        varies: whether its values stand for those of every run, so that nothing may be decided by them (see
            undecided.py).
        maps: whether this is a batch: operations are mapped over an axis that primals have in front.
        depth: a serial number. It grows with every new level; the height of a stack would not do, since threads and
            generators leave levels in another order than they entered them.
        number: the next number of a node; raises once the transform has ended, which also catches values that leak.
        quick: whether an operation may append its node by itself, without asking `follow`. This is the hot path.
        append: adds a node to the tape.
        lines: where operations stand in the user's code, by the numbers of their nodes; None where that is not noted.
    """

    __slots__ = ("__weakref__", "append", "borrowed", "depth", "hooks", "lines", "number", "quick", "repeatable")

    records = False
    is_swept = False
    pushes = False
    calls_hooks = False
    varies = False
    maps = False
    size: int  # the number of examples of a batch

    depth: int
    number: Callable[[], int]
    append: Callable[[Node], None]
    quick: bool
    # Hooks and users' own rules may act on the world: a level that holds one is swept once (see reverse/tape.py).
    repeatable: bool
    hooks: list[Node]

    def __init__(self) -> None:
        self.depth = _serial()
        self.number = itertools.count(1).__next__
        self.quick = False
        self.repeatable = True
        self.hooks = []
        # Large plain arrays that nodes keep are made read-only while the function runs, and listed here; where the
        # sweep does not follow at once this is None, and they are copied (see views.kept).
        self.borrowed: list[Any] | None = None
        self.lines: dict[int, str] | None = None

    def follow(self, y: Any, node: Node) -> Any:
        """The result of an operation with primal `y`; called where `quick` is false."""
        raise NotImplementedError

    def apply(self, binding: Binding, active: list[Operand]) -> Any:
        """The result of a call by a rule that is not elementwise; `active` are the operands of this level."""
        raise NotImplementedError

    # What a level that does not record knows of a value, its link, changes with the value.

    def still(self, x: Any) -> Any:
        """The link of a constant."""
        raise NotImplementedError

    def part(self, link: Any, path: Any) -> Any:
        """The link of the view at the end of a path (see writing.py)."""
        raise NotImplementedError

    def write_link(self, x: Traced, path: Any, key: Any, value: Any) -> None:
        """Change the link of `x` as `follow(x, path)[key] = value` has changed its primal."""
        raise NotImplementedError

    def decided(self) -> None:
        """Told to a level that `varies`: something was decided by a value of it."""

    def shows_nan(self, link: Any) -> bool:
        """Whether there is a NaN in a link."""
        return False

    def map(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a call of which this batch is the highest level."""
        raise NotImplementedError

    def one_by_one(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The results of `function` for one example of this batch after the other."""
        raise NotImplementedError

    def examples(self, args: tuple[Any, ...]) -> tuple[int, list[Any], list[bool]]:
        """How many examples there are, and the arguments of all; whether each has the axis of the examples in front."""
        raise NotImplementedError

    def wrap(self, raw: Any) -> Any:
        """What has been computed of all examples, as a value (or several) of this batch."""
        raise NotImplementedError

    def prepare(self, x: Traced) -> None:
        """Make `x`, which is constant, a handle that can become a value of this batch."""
        raise NotImplementedError

    def spread_in_place(self, x: Traced) -> None:
        """Make `x`, which is the same for all examples so far, a value of this batch."""
        raise NotImplementedError

    def read(self, x: Any, key: Any) -> Any:
        """`x[key]`, where `x` or the key belongs to this batch."""
        raise NotImplementedError

    def place(self, x: Any, path: Any, key: Any, value: Any) -> tuple[Any, Any, Any]:
        """Path, key and value of a write as they are for the primal of `x`."""
        raise NotImplementedError


def ended() -> int:
    raise EndedError(
        "a traced value was used after the transform that made it had ended",
        "return it from the function (pullback and withgradient return values as well)",
        "keep data(x) instead, where a plain number is wanted",
    )


class Suspension:
    """A time in which a level does not record.

    Attributes:
        level: the level.
        met: the links of its values that were used meanwhile, by identity.
        repeatable: whether what was met may be run twice (no hooks).
        hold: makes the result of an operation that was not recorded.
    """

    __slots__ = ("hold", "level", "met", "repeatable")

    def __init__(self, level: Level, hold: Callable[[Any], Any]) -> None:
        self.level = level
        self.met: dict[int, Any] = {}
        self.repeatable = True
        self.hold = hold


class Context(NamedTuple):
    """What a running thread or task knows; immutable, so that an interrupt cannot leave it half changed."""

    # The transforms that are running here, outermost first.
    levels: tuple[Level, ...] = ()
    # For each block of `ignore` in progress the depth up to which it ignores levels.
    ignored: tuple[int, ...] = ()
    # Levels whose operations are not recorded just now, with the values of theirs that operations met.
    suspended: tuple[Suspension, ...] = ()
    # The parameters that an enclosing `gradient(f, Params(...))` has made its own leaves, by identity.
    leaves: dict[int, Traced] = {}  # noqa: RUF012  (a NamedTuple default; never written to)


CONTEXT: ContextVar[Context] = ContextVar("retrograde", default=Context())  # noqa: B039  (immutable)

# The levels of running transforms, in whatever thread, and the blocks of `ignore` in progress. No counts, which an
# interrupt could leave wrong, and levels only weakly: one that an interrupt left here goes when it is freed.
ACTIVE: dict[int, weakref.ref[Level]] = {}
_always: list[Level] = []  # levels that never end
VARYING: dict[int, weakref.ref[Level]] = {}  # those among the running ones that vary
_ignoring: set[object] = set()


def examples() -> int:
    """How many examples the batches that are running here have together; 1 outside of all."""
    levels = CONTEXT.get().levels
    return math.prod([level.size for level in levels if level.maps]) if levels else 1


def is_ignored(level: Level) -> bool:
    """Whether the running thread is inside an `ignore()` that was entered after this level began."""
    return level.depth <= ignored_depth(CONTEXT.get())


def ignored_depth(context: Context) -> int:
    """The depth up to which levels are ignored; −2, below all of them, outside of every block of `ignore`."""
    # Blocks are entered in the order of their depths, so the last one ignores most.
    for depth in reversed(context.ignored):
        frame = _in_generators.get(depth)
        if frame is None or _is_running(frame):
            return depth
    return -2


# Blocks that stand in a generator, by depth, with its frame: they are in effect only while the generator runs, and not
# in the code that it yields to.
_in_generators: dict[int, FrameType] = {}
_GENERATOR = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR


def _generators_frame() -> FrameType | None:
    """The frame that enters a block, if it is a generator's. That of a context manager does not count: it means its
    caller."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and (is_ours(frame) or frame.f_code.co_filename == contextlib.__file__):
        frame = frame.f_back
    if frame is None or not frame.f_code.co_flags & _GENERATOR:
        return None
    caller = frame.f_back
    return None if caller is not None and caller.f_code.co_filename == contextlib.__file__ else frame


def _is_running(frame: FrameType) -> bool:
    """Whether a generator is running in this thread, now or further out."""
    running: FrameType | None = sys._getframe(1)
    while running is not None and running is not frame:
        running = running.f_back
    return running is frame


def some_are_asked() -> bool:
    """Whether any thread is in a block in which levels do not record; otherwise `set_aside` need not be called."""
    return bool(_ignoring)


def set_aside(level: Level, links: Iterable[Any]) -> Callable[[Any], Any] | None:
    """What makes the result of an operation that is not recorded of its primal; None where it is recorded.

    Args:
        links: those of the operands, of which a suspended level makes a note.
    """
    context = CONTEXT.get()
    if context.ignored and level.depth <= ignored_depth(context):
        return _as_it_is
    suspension = suspension_of(level)
    if suspension is None:
        return None
    suspension.met.update((id(link), link) for link in links)
    return suspension.hold


def suspension_of(level: Level) -> Suspension | None:
    """The suspension of a level in this thread, if it is suspended."""
    for suspension in CONTEXT.get().suspended:
        if suspension.level is level:
            return suspension
    return None


def _as_it_is(y: Any) -> Any:
    return y


@contextmanager
def ignoring() -> Iterator[None]:
    """Record nothing in this thread on any level that exists now."""
    depth = _serial()
    frame = _generators_frame()
    with _asked():
        context = CONTEXT.get()
        CONTEXT.set(context._replace(ignored=(*context.ignored, depth)))
        try:
            if frame is not None:
                _in_generators[depth] = frame
            yield
        finally:
            _in_generators.pop(depth, None)
            # Not simply what was before: generators leave their blocks in any order.
            context = CONTEXT.get()
            CONTEXT.set(context._replace(ignored=tuple(d for d in context.ignored if d != depth)))


@contextmanager
def suspended(suspension: Suspension) -> Iterator[Suspension]:
    """Do not record on the suspension's level in this thread."""
    with _asked():
        context = CONTEXT.get()
        restore = CONTEXT.set(context._replace(suspended=(*context.suspended, suspension)))
        try:
            yield suspension
        finally:
            CONTEXT.reset(restore)


@contextmanager
def _asked() -> Iterator[None]:
    """Make operations ask their level whether it records them."""
    token = object()
    try:
        _ignoring.add(token)
        _set_quick()
        yield
    finally:
        _ignoring.discard(token)
        _set_quick()


def begin(level: Level) -> None:
    """Enter a level among those that are running."""
    level.quick = level.records and not _ignoring and level.lines is None
    with _switching:
        if not ACTIVE:
            on_first_transform()
        key = id(level)
        ACTIVE[key] = weakref.ref(level, lambda _: ACTIVE.pop(key, None))


def never_ends(level: Level) -> None:
    """Enter a level that is there as long as the library is."""
    _always.append(level)


def finish(level: Level) -> None:
    """Take a level out again and refuse every further operation of it."""
    level.number = ended
    with _switching:
        ACTIVE.pop(id(level), None)
        if not ACTIVE:
            on_last_transform()


_switching = threading.Lock()


# What is done while some transform runs, in any thread; set by interception.py.
def on_first_transform() -> None:
    """Called before the first level begins."""


def on_last_transform() -> None:
    """Called after the last level has ended."""


def _set_quick() -> None:
    """Let operations take the hot path exactly while nobody is ignoring."""
    for level in (*_always, *(level for ref in tuple(ACTIVE.values()) if (level := ref()) is not None)):
        level.quick = level.records and not _ignoring and level.lines is None
