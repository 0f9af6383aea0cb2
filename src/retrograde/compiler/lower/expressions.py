"""Expressions. Whatever has no method here is not in the language."""

from __future__ import annotations

import ast
import functools
import types
from dataclasses import replace
from typing import Any

import numpy as np

from retrograde.compiler import ops
from retrograde.compiler.form import Raise, Slice
from retrograde.compiler.known import Constant
from retrograde.compiler.lower import functions
from retrograde.compiler.lower.descriptions import describe
from retrograde.compiler.lower.indexing import items_of
from retrograde.compiler.lower.operators import Operators
from retrograde.compiler.lower.values import ELLIPSIS, NONE, Bound, Closure, InCell, Lazy, Object, PerhapsBound, Stale
from retrograde.compiler.source import lambda_as_def
from retrograde.compiler.types import Operand, Type


class Expressions(Operators):
    def expr(self, node: ast.expr) -> Any:
        """The value of an expression."""
        method = getattr(self, f"on_{type(node).__name__}", None)
        with self.placed(node):
            if method is None:
                raise self.refuse(*_REFUSED.get(type(node).__name__, (f"this {type(node).__name__}",)))
            return method(node)

    def exprs(self, nodes: list[ast.expr]) -> list[Any]:
        """The values of expressions in order; an array that a later call could change is computed before the call."""
        values: list[Any] = []
        for node in nodes:
            if any(isinstance(v, Lazy) for v in values) and self.calls_python(node):
                values = [self.in_memory(v) if isinstance(v, Lazy) else v for v in values]
            values.append(self.expr(node))
        return values

    def calls_python(self, node: ast.AST) -> bool:
        """Whether an expression calls a function of the user's, which might write into arrays."""
        for n in ast.walk(node):
            if isinstance(n, ast.Call):
                f = self.constant_of(n.func)
                if f is None or not (f in functions.HANDLERS or f in functions.VARIADIC or isinstance(f, np.ufunc)):
                    return True
        return False

    def constant_of(self, node: ast.expr) -> Any:
        """The Python object that a name or a dotted name means at compile time, or None."""
        if isinstance(node, ast.Name):
            return None if self.frame.owner_of(node.id) else self.frame.source.names.get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.constant_of(node.value)
            return getattr(owner, node.attr, None) if owner is not None else None
        return None

    # --- names and literals --------------------------------------------------------------------------------------

    def on_Constant(self, node: ast.Constant) -> Any:
        value = node.value
        if isinstance(value, bool | int | float | complex):
            return value
        return NONE if value is None else Constant(value)

    def on_Name(self, node: ast.Name) -> Any:
        name, frame = node.id, self.frame.owner_of(node.id)
        if frame is None:
            names = self.frame.source.names
            if name not in names:
                raise self.refuse(f"{name} is not defined")
            return self.outside(names[name], name)
        if name not in frame.env:
            raise self.unbound_name(name)
        value = frame.env[name]
        if isinstance(value, InCell):
            return self.read_cell(name, value.cell)
        if isinstance(value, PerhapsBound):
            self.guard_bound(name, value.flag)
            return value.array
        if isinstance(value, Stale):
            raise self.refuse(
                f"{name} is another name for the array {value.owner}, which is bound to another one meanwhile",
                f"{name} = {value.owner}.copy()",
            )
        return value

    def read_cell(self, name: str, cell: str) -> Operand:
        """The value in a cell; where no path may have written it yet, Python's error instead."""
        if cell in self.unbound and cell not in self.frame.surely and name not in self.frame.trusted:
            self.guard_bound(name, self.unbound[cell])
            self.frame.surely.add(cell)
        return self.get(cell)

    def guard_bound(self, name: str, flag: str) -> None:
        """Raise at run time, as Python does, where no path has bound a name."""
        message = f"cannot access local variable '{name}' where it is not associated with a value{self.where()}"
        unbound = self.op("not", self.get(flag))
        self.branch(unbound, functools.partial(self.emit, Raise("UnboundLocalError", message)))

    # Cells and slots whose names meant nothing yet when they were made, and the cells that say whether they do now.
    unbound: dict[str, str]

    def unbound_name(self, name: str) -> Exception:
        if any(key[1] == name for key in self.array_names):
            return self.refuse(
                f"{name} is bound to an array inside a loop or branch and read after it",
                f"{name} = np.empty(shape) before it, and {name}[:] = … inside",
            )
        return self.refuse(f"{name} may be read before it is bound", f"a value for {name} before the loop or branch")

    array_names: set[Any]

    def outside(self, value: Any, name: str) -> Any:
        """What a global or a closed-over name, a default or an attribute of a module stands for."""
        if isinstance(value, bool | np.bool_):
            return bool(value)
        if isinstance(value, int | float | complex | np.number):
            return value.item() if isinstance(value, np.generic) else value
        if isinstance(value, np.ndarray):
            return self.constant_array(value, name)
        if isinstance(value, tuple) and not hasattr(value, "_fields"):
            return tuple(self.outside(v, name) for v in value)
        if value is None:
            return NONE
        if isinstance(value, list | dict | set):
            raise self.refuse(f"the {type(value).__name__} {name} from outside the function", "a tuple or an array")
        return Constant(value)

    def constant_array(self, value: np.ndarray, name: str) -> Any:
        """An array from outside the function: an argument that the caller does not see."""
        key = id(value)
        if key not in self.constants:
            if value.dtype.kind not in "fciub" or value.ndim == 0:
                raise self.refuse(f"the array {name} of dtype {value.dtype} and {value.ndim} axes from outside")
            param = self.program.new(name, Type(value.dtype.name, value.ndim))
            self.constants[key] = (param, value)
            self.program.set_dims(param, tuple(int(n) for n in value.shape))
            self.read_only.add(param)
        return self.constants[key][0]

    # Arrays from outside the function: their parameters and themselves, by identity.
    constants: dict[int, tuple[str, np.ndarray]]
    read_only: set[str]

    def on_Tuple(self, node: ast.Tuple) -> Any:
        starred = [isinstance(e, ast.Starred) for e in node.elts]
        values = self.exprs([e.value if isinstance(e, ast.Starred) else e for e in node.elts])
        found: list[Any] = []
        for value, is_starred in zip(values, starred, strict=True):
            if is_starred and not isinstance(value, tuple):
                raise self.refuse("* of something that is no tuple")
            found += value if is_starred else [value]
        return tuple(found)

    def on_List(self, node: ast.List) -> Any:
        rows: Any = self.on_Tuple(node)  # type: ignore[arg-type]
        if all(isinstance(e, ast.List) for e in node.elts) and not self.is_derived:
            types = {self.common_type(row) for row in rows}
            if len(types - {None}) > 1:
                kinds = " and ".join(sorted(map(str, types)))
                raise self.refuse(
                    f"a nested list whose rows are of different types, {kinds}, which numba does not take",
                    "((…), (…)), tuples in the place of lists",
                    "rows of one type, as [1.0 + 0j, 1j]",
                )
        return rows

    def common_type(self, row: tuple[Any, ...]) -> Type | None:
        """The type of a row of numbers; None for anything else."""
        if any(isinstance(v, tuple | Object) or self.is_array(v) for v in row):
            return None
        return ops.common(*map(self.type_of, row)) if row else None

    def on_Lambda(self, node: ast.Lambda) -> Any:
        return self.closure(lambda_as_def(node))

    def closure(self, tree: ast.FunctionDef) -> Closure:
        """A function that is defined here."""
        source = replace(self.frame.source, tree=tree)
        known = tree.args
        positional = [*known.posonlyargs, *known.args][-len(known.defaults) :] if known.defaults else []
        pairs = [*zip(positional, known.defaults, strict=True), *zip(known.kwonlyargs, known.kw_defaults, strict=True)]
        defaults = {a.arg: self.expr(default) for a, default in pairs if default is not None}
        return Closure(
            source, self.frame, {n: self.in_memory(v) if isinstance(v, Lazy) else v for n, v in defaults.items()}
        )

    def on_Slice(self, node: ast.Slice) -> Any:
        return Slice(*(None if b is None else self.scalar(b) for b in (node.lower, node.upper, node.step)))

    # --- attributes and subscripts -------------------------------------------------------------------------------

    def on_Attribute(self, node: ast.Attribute) -> Any:
        value = self.expr(node.value)
        name = node.attr
        if self.is_array(value):
            shape = self.shape(value)
            if name == "T":
                return functions.transpose(self, value)
            if name == "shape":
                return tuple(shape)
            if name == "size":
                return self.size_of(shape)
            if name == "ndim":
                return len(shape)
            if name == "dtype":
                return Constant(np.dtype(self.element_type(value).dtype))
            if name in ("real", "imag"):
                return functions.part(self, value, name)
            if name == "flat":
                return functions.ravel(self, value)
            if name == "mT":
                return functions.transpose_matrices(self, value)
            if name in functions.METHODS:
                return Bound(value, name)
            raise self.refuse(f"the attribute {name} of an array")
        if isinstance(value, tuple):
            fields = getattr(value, "_fields", ())
            if name in fields:
                return value[fields.index(name)]
            if name in ("append", "extend", "insert", "pop"):
                raise self.refuse(
                    "a list that changes its length", "out = np.empty(n) before the loop, and out[i] = … inside"
                )
            raise self.refuse(f"the attribute {name} of a tuple")
        if isinstance(value, Constant):
            if not hasattr(value.value, name):
                raise self.refuse(f"{describe(self, value)} has no attribute {name}")
            return self.outside(getattr(value.value, name), name)
        if not isinstance(value, Object):
            if name in ("real", "imag"):
                return self.op(name, value)
            if name == "conjugate":
                return Bound(value, name)
            if name == "conj":
                raise self.refuse("the method conj of a number, which numba has for arrays only", "np.conj(z)")
        raise self.refuse(f"the attribute {name} of {describe(self, value)}")

    def on_Subscript(self, node: ast.Subscript) -> Any:
        value = self.expr(node.value)
        items = self.exprs(items_of(node.slice))
        if isinstance(value, tuple):
            if len(items) == 1 and type(items[0]) is int and -len(value) <= items[0] < len(value):
                return value[items[0]]
            if len(items) == 1 and isinstance(items[0], Slice) and not any(isinstance(b, str) for b in items[0]):
                return tuple(value)[slice(*items[0])]
            raise self.refuse("an index of a tuple that is not written as a number", "an array instead of the tuple")
        if self.is_array(value):
            return self.subscript(value, items)
        new_axes = [i for i in items if i is NONE]
        if isinstance(value, Object) or len(new_axes) + sum(i == ELLIPSIS for i in items) < len(items):
            raise self.refuse(f"a subscript of {describe(self, value)}")
        return Lazy((1,) * len(new_axes), lambda index: value, self.type_of(value)) if new_axes else value

    # --- calls ---------------------------------------------------------------------------------------------------

    def on_Call(self, node: ast.Call) -> Any:
        function = self.expr(node.func)
        if any(isinstance(a, ast.Starred) for a in node.args):
            args = []
            for a in node.args:
                value = self.expr(a.value if isinstance(a, ast.Starred) else a)
                if isinstance(a, ast.Starred) and not isinstance(value, tuple):
                    raise self.refuse("* of something that is no tuple")
                args += list(value) if isinstance(a, ast.Starred) else [value]
            values = args + self.exprs([k.value for k in node.keywords])
        else:
            values = self.exprs([*node.args, *(k.value for k in node.keywords)])
            args = values[: len(node.args)]
        if any(k.arg is None for k in node.keywords):
            raise self.refuse("** in a call", "the arguments by name")
        kwargs = dict(zip([k.arg or "" for k in node.keywords], values[len(args) :], strict=True))
        if isinstance(function, Closure):
            return self.call_closure(function, args, kwargs)
        if isinstance(function, Bound):
            return self.call_method(function, args, kwargs)
        if not isinstance(function, Constant):
            raise self.refuse(f"a call of {describe(self, function)}")
        return self.call_constant(function.value, args, kwargs)

    def call_method(self, method: Bound, args: list[Any], kwargs: dict[str, Any]) -> Any:
        function = functions.METHODS[method.name]
        if method.name in ("reshape", "transpose") and len(args) > 1:
            args = [tuple(args)]
        return functions.call_function(self, function, [method.array, *args], kwargs)

    def call_constant(self, f: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        try:
            hash(f)
        except TypeError:
            raise self.refuse(f"a call of a {type(f).__name__}") from None
        if (f in functions.OF_CONSTANTS or _is_method_of_text(f)) and all(isinstance(a, Constant) for a in args):
            return self.outside(f(*(a.value for a in args)), "a constant")
        if f in functions.VARIADIC and not kwargs:
            return functions.VARIADIC[f](self, args)
        if getattr(f, "__name__", "") == "prange" and getattr(f, "__module__", "").startswith("numba."):
            return replace(functions.call_function(self, range, args, kwargs), parallel=True)
        result = functions.call_function(self, f, args, kwargs)
        if result is not None:
            return result
        return self.call_python(f, args, kwargs)

    def call_closure(self, f: Closure, args: list[Any], kwargs: dict[str, Any]) -> Any:
        raise NotImplementedError

    def call_python(self, f: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
        raise NotImplementedError


def _is_method_of_text(f: Any) -> bool:
    return isinstance(f, types.BuiltinMethodType) and isinstance(f.__self__, str)


_REFUSED = {
    "ListComp": ("a list comprehension", "a loop that fills an array"),
    "GeneratorExp": ("a generator", "a loop, or an array expression"),
    "DictComp": ("a dictionary",),
    "SetComp": ("a set",),
    "Dict": ("a dictionary", "a tuple, or a named tuple"),
    "Set": ("a set", "a tuple"),
    "JoinedStr": ("a formatted text",),
    "Await": ("await",),
    "Yield": ("yield",),
    "YieldFrom": ("yield",),
    "NamedExpr": ("an assignment inside an expression", "a statement of its own"),
    "Starred": ("* outside of a call",),
}

__all__ = ["Expressions"]
