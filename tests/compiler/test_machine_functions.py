"""The functions of vectormath.py as LLVM's text, of one number and of eight, have the bits of numba's code of them."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")

import llvmlite.binding as llvm
import numba

from retrograde.compiler import vectormath
from retrograde.compiler.machine.functions import text_of, with_tables

AWKWARD = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -1e-310, 1.0, -1.0, 0.5, 2.0, 709.8, -745.2, 1e22, -1e300, 1e-9]
ONE = "exp expm1 log log1p tanh sin cos erf erfc".split()
TWO = "pow plus maximum minimum".split()


def machine_code(name: str, arity: int) -> tuple[Any, Any]:
    """What keeps the code, and a function that fills its last array, eight at a time and one at a time."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    parts = []
    declared: dict[str, None] = {}
    for lanes, kind in ((8, "<8 x double>"), (0, "double")):
        symbol, text, needs = text_of(name, lanes)
        declared.update(dict.fromkeys(needs))
        args = ", ".join(f"ptr %p{k}" for k in range(arity))
        loads = "\n".join(f"%x{k} = load {kind}, ptr %p{k}, align 8" for k in range(arity))
        given = ", ".join(f"{kind} %x{k}" for k in range(arity))
        parts.append(
            f"{text}\ndefine void @of{lanes}({args}, ptr %out) {{\n{loads}\n"
            f"%y = call {kind} {symbol}({given})\nstore {kind} %y, ptr %out, align 8\nret void\n}}"
        )
    module = llvm.parse_assembly(with_tables("\n".join([*parts, *declared])))
    module.verify()
    features = llvm.get_host_cpu_features().flatten()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=2
    )
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (arity + 1))
    of8, of1 = (kind(engine.get_function_address(f"of{lanes}")) for lanes in (8, 0))

    def run(*xs: Any) -> tuple[Any, Any]:
        eight, one = np.empty(xs[0].size), np.empty(xs[0].size)
        for k in range(0, eight.size, 8):
            of8(*(x.ctypes.data + 8 * k for x in (*xs, eight)))
        for k in range(one.size):
            of1(*(x.ctypes.data + 8 * k for x in (*xs, one)))
        return eight, one

    return engine, run


def points(arity: int) -> list[Any]:
    rng = np.random.default_rng(0)
    small = rng.uniform(-3, 3, 400)
    wide = rng.choice([-1, 1], 400) * 10.0 ** rng.uniform(-300, 300, 400)
    x = np.concatenate([AWKWARD, small, wide])
    if arity == 1:
        return [x]
    a, b = np.meshgrid(AWKWARD, AWKWARD)
    return [np.concatenate([a.ravel(), x]), np.concatenate([b.ravel(), rng.permutation(x)])]


@pytest.mark.parametrize("name", [*ONE, *TWO])
def test_the_text_of_a_function_has_the_bits_of_numbas(name):
    arity = 1 if name in ONE else 2
    function = getattr(vectormath, name)
    names = ", ".join(f"x{k}" for k in range(arity))
    elements = ", ".join(f"x{k}[i]" for k in range(arity))
    scope: dict[str, Any] = {"function": function}
    exec(f"def each({names}, out):\n    for i in range(out.size):\n        out[i] = function({elements})\n", scope)
    xs = points(arity)
    want = np.empty(xs[0].size)
    numba.njit(error_model="numpy")(scope["each"])(*xs, want)
    engine, run = machine_code(name, arity)
    for got in run(*xs):
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(np.signbit(got)[want == 0], np.signbit(want)[want == 0])
    del engine
