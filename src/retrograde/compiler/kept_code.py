"""Numba's code of a function, kept on disk under a key of ours.

numba keeps code itself, but knows a function by the time at which its file was written: not by what it calls in other
files, by the values it closes over, or by flags. Here a key says all that the code depends on. It also takes half a
second to load what it needs for compiling before it looks for code that was kept; that waits until there is something
to compile.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import llvmlite.binding as llvm
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.codegen import RuntimeLinker
from numba.core.runtime.nrt import rtsys

from retrograde.compiler.kept import folder


def keep_code(dispatcher: Any, key: str, prepare: Callable[[], None] | None = None) -> None:
    """Let numba keep its code of a function under a key, which says all that the code depends on.

    Args:
        prepare: is called before numba compiles, as no code was kept.
    """
    implementation = type("_Implementation", (_Implementation,), {"_locator_classes": [_locator(dispatcher, key)]})
    kept = type("_Kept", (_Kept,), {"_impl_class": implementation, "_prepare": staticmethod(prepare or _nothing)})
    dispatcher._cache = kept(dispatcher.py_func)


def _nothing() -> None:
    pass


def _locator(dispatcher: Any, key: str) -> Any:
    class Locator:
        """Numba's way of asking where code is kept, and for what state of the source it is good."""

        _py_file = dispatcher.py_func.__code__.co_filename

        @classmethod
        def from_function(cls, _function: Any, _file: str) -> Any:
            return cls()

        def get_cache_path(self) -> str:
            return folder()

        def ensure_cache_path(self) -> None:
            os.makedirs(folder(), exist_ok=True)

        def get_source_stamp(self) -> str:
            return key

        def get_disambiguator(self) -> str:
            return key[:16]

    return Locator


class _Implementation(CompileResultCacheImpl):  # type: ignore[misc]
    def check_cachable(self, result: Any) -> bool:
        # As numba's own, without its warning. Functions that call themselves do so by a pointer to code of another
        # library, which is not kept with theirs: in another process it would point to nothing.
        library = result.library
        pointers = (g.name.startswith(RuntimeLinker.PREFIX) for g in library._final_module.global_variables)
        return not (library.has_dynamic_globals or any(not x.can_cache for x in result.lifted) or any(pointers))


class _Kept(FunctionCache):  # type: ignore[misc]
    """A cache that never breaks a call: what cannot be read is compiled, what cannot be written is not kept."""

    _prepare: Any

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        found = self._found(sig, target_context)
        if found is None:
            self._prepare()
        return found

    def _found(self, sig: Any, target_context: Any) -> Any:
        kept: Any = self
        try:
            rtsys.initialize(target_context)
            data = kept._cache_file.load(kept._index_key(sig, target_context.codegen()))
            if data is None:
                return None
            if not _is_complete(data):
                target_context.refresh()
            return kept._impl.rebuild(target_context, data)
        except Exception:  # a damaged file, or a numba that keeps its code in another way
            with suppress(Exception):
                kept.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(Exception):  # a folder that cannot be written
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]


def _is_complete(data: Any) -> bool:
    """Whether all that the code calls is in this process already."""
    _, kind, (_, bitcode) = data[0]
    if kind != "object":
        return False
    declared = (f.name for f in llvm.parse_bitcode(bitcode).functions if f.is_declaration)
    return all(name.startswith("llvm.") or llvm.address_of_symbol(name) is not None for name in declared)
