"""From text to native code: numba, imported when it is first used."""

from __future__ import annotations

import functools
import hashlib
import linecache
import os
import re
import sys
import traceback
import types
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from retrograde.compiler import kept, special_functions
from retrograde.compiler.complex_dtype import teach_complex_dtype
from retrograde.compiler.head import HEAD
from retrograde.compiler.outside import Outside, read_by
from retrograde.compiler.self_calls import jitted
from retrograde.compiler.settings import Settings
from retrograde.errors import CompilationError, MissingExtraError, RetrogradeError
from retrograde.trace.interception import let_numba_compile

if TYPE_CHECKING:
    from retrograde.compiler.machine.written import Kernel


def numba() -> Any:
    """The module numba.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        import numba as module
    except ImportError:
        raise MissingExtraError(
            "compile needs numba, which is not installed", "pip install 'retrograde[compile]'"
        ) from None
    return module


def load(
    text: str, name: str, title: str, decorate: Callable[[Any], Any] | None, names: dict[str, Any] | None = None
) -> Any:
    """The function `name` of a module with this text; `decorate` is applied to every function of it.

    Without `decorate` the text runs as plain Python. `names` are what it calls of other modules.
    """
    imports = "from retrograde.compiler import vectormath\n" if "vectormath." in text else ""
    source = HEAD.format(title=title, imports=imports) + "\n" + text
    key = hashlib.sha256(source.encode()).hexdigest()[:12]
    file = f"<retrograde {title} {key}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    module = types.ModuleType(f"retrograde_generated_{key}")
    sys.modules[module.__name__] = module  # numba asks for it when it loads code that was kept
    module.__file__ = file
    module.__dict__.update(names or {})
    if "special." in text:
        module.__dict__["special"] = special_functions
        if decorate is not None:
            teach_special()
    if "prange(" in text:
        in_parts = (range, _two) if decorate is None else (numba().prange, numba().get_num_threads)
        module.__dict__.update(zip(("prange", "threads"), in_parts, strict=True))
    exec(compile(source, file, "exec"), module.__dict__)
    if decorate is not None:
        for key, value in list(module.__dict__.items()):
            if isinstance(value, types.FunctionType) and value.__module__ == module.__name__:
                setattr(module, key, decorate(value))
    return getattr(module, name)


def _two() -> int:
    """The number of threads that plain Python plays."""
    return 2


# Of what numba can run on threads, the loops over `prange`: it would cut up every whole-array operation besides.
_OTHERS = ("comprehension", "reduction", "inplace_binop", "setitem", "numpy", "stencil", "fusion")
_LOOPS_ONLY = {"prange": True, **dict.fromkeys(_OTHERS, False)}


def on_threads(function: types.FunctionType, settings: Settings) -> Any:
    """What numba is told of running a function on threads."""
    return settings.parallel and "prange" in function.__code__.co_names and _LOOPS_ONLY


def load_kernel(
    kernel: Kernel, name: str, params: Sequence[str], title: str, settings: Settings, key: str | None
) -> Any:
    """A function of numba's that calls a program which is there as LLVM's text.

    What numba needs for compiling it is imported when there is no code of it on disk.
    """
    module: dict[str, Any] = {}
    if kernel.has_threads:
        # They are started, and their functions known to LLVM, before code that calls them is loaded.
        with suppress(AttributeError):  # of another numba, which gets the Python text
            import_module("numba.np.ufunc.parallel")._launch_threads()

    def prepare() -> None:
        from retrograde.compiler.machine.kernel import callable_in_numba

        if "special." in kernel.text:
            teach_special()
        module[inner] = callable_in_numba(kernel)

    def decorate(function: types.FunctionType) -> Any:
        nonlocal module
        module = function.__globals__
        return derivative_decorator(settings, name, key, prepare)(function) if function.__name__ == name else function

    args = ", ".join(params)
    inner = f"{name}_in_machine_code"
    return load(f"def {name}({args}):\n    return {inner}({args})\n", name, title, decorate)


def derivative_decorator(
    settings: Settings, name: str, key: str | None, prepare: Callable[[], None] | None = None
) -> Callable[[Any], Any]:
    """Derivative programs follow IEEE arithmetic: a division by zero is infinite and raises nothing.

    Args:
        name: the function whose code is kept, with that of all that it calls.
        key: what numba's code is kept under; None where it is not kept.
        prepare: what has to be done before numba compiles.
    """

    def decorate(function: types.FunctionType) -> Any:
        made = numba().njit(
            function,
            error_model="numpy",
            fastmath=settings.fastmath,
            parallel=on_threads(function, settings),
            no_cfunc_wrapper=True,
        )
        is_kept = key is not None and function.__name__ == name and _keep(made, kept.key_of(key, name), prepare)
        if prepare is not None and not is_kept:
            prepare()
        return made

    return decorate


@functools.cache
def teach_special() -> None:
    """Let numba compile the special functions that have a native form, under their own names and SciPy's."""
    own = [f for f in vars(special_functions).values() if isinstance(f, types.FunctionType)]
    teach(tuple(own))
    special = sys.modules.get("scipy.special")
    for name in special_functions.UFUNCS if special is not None else ():
        if isinstance(ufunc := getattr(special, name, None), np.ufunc):
            code = numba().vectorize(getattr(special_functions, name))
            numba().extending.overload(ufunc)(_of_one(code) if ufunc.nin == 1 else _of_two(code))


def _of_one(code: Any) -> Any:
    """What numba asks for the code of a function of one number or array."""
    return lambda x: lambda x: code(x)


def _of_two(code: Any) -> Any:
    return lambda x, y: lambda x, y: code(x, y)


def primal_dispatcher(function: types.FunctionType, settings: Settings, key: str | None, outside: Outside) -> Guarded:
    """numba's own code of the function as written, with Python's errors.

    Args:
        outside: what it reads from outside.
    """
    if "scipy.special" in sys.modules:
        teach_special()
    teach_complex_dtype(numba())
    # None leaves it to the environment.
    options = {
        "fastmath": settings.fastmath,
        "parallel": on_threads(function, settings),
        "boundscheck": settings.boundscheck or None,
    }
    old = [f for f in outside.functions if f in _jitable and _jitable[f] != read_by(f)]
    made = jitted(function, numba().njit(**options), old)
    if key is not None:
        _keep(made, kept.key_of(key, repr(settings)))
    compile_checked(made, outside.check)
    return Guarded(made, function.__name__)


def compile_checked(dispatcher: Any, check: Callable[[], None]) -> None:
    """Let a dispatcher call `check` before it compiles for arguments of new types, whoever calls it."""

    def compile_after_check(signature: Any) -> Any:
        check()
        return type(dispatcher).compile(dispatcher, signature)  # as it is then: see let_numba_compile

    dispatcher.compile = compile_after_check


def _keep(dispatcher: Any, key: str, prepare: Callable[[], None] | None = None) -> bool:
    """Keep numba's code on disk; whether that is possible."""
    try:
        import_module("retrograde.compiler.kept_code").keep_code(dispatcher, key, prepare)
    except Exception:  # a version of numba that keeps its code in another way
        return False
    return True


def teach(functions: tuple[types.FunctionType, ...]) -> None:
    """Let numba compile Python functions where they are called."""
    for function in functions:
        if function not in _jitable:
            numba().extending.register_jitable(function)
            _jitable[function] = read_by(function)


_jitable: dict[types.FunctionType, Any] = {}
"""The functions, with what they read from outside when they were taught."""


class Guarded:
    """A numba dispatcher that compiles with NumPy's own functions in place, also while a transform runs."""

    __slots__ = ("dispatcher", "name", "otherwise", "tells_of_nan")

    def __init__(
        self,
        dispatcher: Any,
        name: str,
        otherwise: Callable[[], Any] | None = None,
        tells_of_nan: bool = False,
    ) -> None:
        """
        Args:
            otherwise: makes a dispatcher for the same that takes more kinds of arguments.
            tells_of_nan: whether the last result says if a NaN was seen; that of the other dispatcher does not.
        """
        let_numba_compile()
        self.dispatcher = dispatcher
        self.name = name
        self.otherwise = otherwise
        self.tells_of_nan = tells_of_nan

    def __call__(self, *args: Any) -> Any:
        try:
            return self.dispatcher(*args)
        except Exception as error:
            if not _is_of_the_compiler(error):
                raise  # the function's own
            return self.without(error, args)

    def without(self, error: Exception, args: tuple[Any, ...]) -> Any:
        """What the other dispatcher makes of some arguments that numba has refused."""
        if self.otherwise is None:
            raise explained(error, self.name) from None
        self.dispatcher, self.otherwise, self.tells_of_nan = self.otherwise(), None, False
        return self(*args)


def _is_of_the_compiler(error: Exception) -> bool:
    """Whether numba has failed to compile, be it by an assertion of its own, and not the compiled function to run."""
    if isinstance(error, numba().core.errors.NumbaError):
        return True
    if isinstance(error, RetrogradeError):
        return False  # said on the way there (see compile_checked)
    own = os.path.dirname(numba().__file__)
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_code.co_filename.startswith(own) for frame, _ in frames)


def explained(error: Exception, name: str) -> Exception:
    """An error of numba's compiler in our words: what it is about, the reason, and the user's line."""
    return CompilationError(
        f"numba cannot compile {name}: {_reason(str(error)) or type(error).__name__}",
        "njit(f)(…) shows all that numba has to say",
    )


def _reason(text: str) -> str:
    """What matters of a message of numba's, which says on many lines where in its own passes it was found."""
    text = re.sub(r"Function\(<\w+ '?([\w.]+)[^>]*>\)", r"\1", text)
    text = re.sub(r"'(\w+)\.\d+', defined at .+ \(\d+\)", r"\1", text)
    lines = [line.strip() for line in text.splitlines()]
    facts = [line for line in lines if line and not line.startswith("Failed in ")]
    if not facts:
        return ""
    fact = facts[0]
    if fact.endswith("signature:"):
        fact = " ".join([fact, *(line.removeprefix(">>>").strip() for line in facts[1:2])])
    causes = re.findall(r"raised a specific error:\s+\w+: *(.+)", text)
    if causes:
        fact = f"{fact}: {causes[-1].strip()}"
    own = [m for m in re.finditer(r'File "([^"]+)", line (\d+)', text) if "numba/" not in m[1].replace("\\", "/")]
    where = f" (line {own[-1][2]} of {os.path.basename(own[-1][1])})" if own else ""
    return fact + where
