"""What a value is, what it converts to and how it is shown: as the primal would answer, or refused with the way out."""

from __future__ import annotations

import cmath
import copy
import decimal
import fractions
import json
import logging
import math
import numbers
import operator
import random
import statistics
import string
import struct
import textwrap
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
from truth import agree, close

from retrograde import ConversionError, RetrogradeError, data, gradient, ignore, istracked, jvp, param

X = np.array([0.5, -1.2, 2.0])

ALL = (
    (X, "array"),
    (np.array(2.5), "0-d array"),
    (np.float64(2.5), "np.float64"),
    (np.float32(2.5), "np.float32"),
    (2.5, "float"),
    (3, "int"),
    (np.int64(3), "np.int64"),
    (np.array([1, 2, 3]), "integer array"),
    (2.5 + 1j, "complex"),
    (np.complex128(2.5 + 1j), "np.complex128"),
    (np.array([1j, 2.0]), "complex array"),
    (np.ones((2, 3), np.float32), "matrix"),
)
VALUES = [value for value, _ in ALL]
KINDS = [name for _, name in ALL]


def inside(f, x):
    """What `f` sees of a traced `x`, in reverse and in forward mode and two levels deep."""
    seen = []

    def watched(x):
        assert istracked(x)
        seen.append(f(x))
        return np.sum(np.real(x * 1.0))

    gradient(watched, x)
    if np.asarray(x).dtype.kind in "fc":
        jvp(watched, (x,), (x,))
        gradient(lambda x: np.sum(np.real(gradient(watched, x)[0] * 1.0)) + 0.0 * np.sum(np.real(x)), x)
    return seen


def same_answers(f, x):
    want = f(x)
    for got in inside(f, x):
        assert type(got) is type(want)
        assert np.array_equal(got, want)


# --- what it is --------------------------------------------------------------------------------------------------

TYPES = (
    np.ndarray, float, int, complex, bool, str, list, tuple, np.generic, np.number, np.floating, np.integer, np.inexact,
    np.float64, np.float32, np.complexfloating, np.bool_, numbers.Number, numbers.Complex, numbers.Real,
    numbers.Rational, numbers.Integral, (int, float), (list, tuple, np.ndarray), int | float, decimal.Decimal,
)  # fmt: skip


@pytest.mark.parametrize("x", VALUES, ids=KINDS)
def test_isinstance_answers_as_for_the_primal(x):
    same_answers(lambda x: [isinstance(x, kind) for kind in TYPES], x)
    same_answers(lambda x: [isinstance(x, kind) for kind in (numbers.Number, np.ndarray)], x)
    for seen in inside(lambda x: (type(x).__name__, issubclass(x.__class__, type(data(x)))), x):
        assert seen[1]
        assert seen[0] not in ("float", "ndarray", "float64")


QUESTIONS = [
    np.ndim,
    np.shape,
    np.size,
    np.isscalar,
    np.iscomplexobj,
    np.isrealobj,
    np.result_type,
    np.isfinite,
    np.isnan,
    np.iterable,
    np.all,
    np.any,
    callable,
    lambda x: np.issubdtype(np.result_type(x), np.floating),
    lambda x: np.issubdtype(np.asarray(x).dtype, np.floating),
    lambda x: np.can_cast(np.result_type(x), float),
    lambda x: np.min_scalar_type(np.result_type(x)).kind,
    lambda x: np.common_type(np.asarray(x) * 1.0),
    lambda x: np.broadcast_shapes(np.shape(x), (1, 1)),
    lambda x: np.finfo(np.result_type(x, np.float32)).eps,
    lambda x: [hasattr(x, name) for name in ("shape", "__len__", "__iter__", "__array__")] if np.ndim(x) else None,
    lambda x: len(x) if np.ndim(x) else None,
    lambda x: np.array_equal(x, x),
    lambda x: np.allclose(x, x),
    lambda x: np.isclose(x, x),
    lambda x: np.array_equiv(x, x),
    lambda x: x is x and x is not None,
    lambda x: bool(np.any(x != 0)),
    lambda x: np.count_nonzero(x),
    lambda x: np.isreal(x),
    lambda x: np.argmax(np.real(x)),
    lambda x: np.signbit(np.real(x)),
    lambda x: operator.length_hint(x, 7) if np.ndim(x) else None,
]


@pytest.mark.parametrize("x", VALUES, ids=KINDS)
def test_questions_about_a_value_are_answered_as_for_the_primal(x):
    for question in QUESTIONS:
        same_answers(question, x)


def test_code_that_asks_for_types_takes_the_branch_that_it_takes_without_us():
    def norm(x):
        if isinstance(x, numbers.Real):
            return abs(x)
        if isinstance(x, (list, tuple)):
            return sum(norm(v) for v in x)
        if isinstance(x, np.ndarray) and x.ndim == 1 and np.issubdtype(x.dtype, np.floating):
            return math.sqrt(np.sum(x * x))
        if isinstance(x, np.ndarray):
            return np.max(np.abs(x))
        raise TypeError

    agree(lambda x: norm(x) + norm([x[0], x]) * norm(x[1]) + norm(np.outer(x, x)) + norm(x[2].item()), X)

    def exactly(x):
        # `type` tells the truth: such code takes its last branch, or raises.
        if type(x) in (float, np.ndarray):
            return "taken"
        return "not taken"

    assert inside(exactly, 2.5) == ["not taken"] * 3


# --- conversions -------------------------------------------------------------------------------------------------

REFUSED = {
    "float(x)": float,
    "int(x)": int,
    "complex(x)": complex,
    "np.float64(x)": np.float64,
    "np.float32(x)": np.float32,
    "np.int64(x)": np.int64,
    "memoryview": lambda x: memoryview(x),
    "np.linspace": lambda x: np.linspace(0, 1, x),
    "operator.index(x)": operator.index,
    "a list index": lambda x: [1, 2, 3][x],
    "range(x)": range,
    "a slice": lambda x: [1, 2, 3][:x],
    "str * x": lambda x: "a" * x,
    "round to x digits": lambda x: round(2.345, x),
    "%d": lambda x: "%d" % x,  # noqa: UP031
    "%f": lambda x: "%f" % x,  # noqa: UP031
    "chr": chr,
    "bin": bin,
    "hex": hex,
    "struct.pack": lambda x: struct.pack("d", x),
    "fractions.Fraction(x)": fractions.Fraction,
    "decimal.Decimal(x)": lambda x: decimal.Decimal(x),
    "json": lambda x: json.dumps({"a": x}),
    "cmath": cmath.exp,
    "math.factorial": math.factorial,
    "math.gcd": lambda x: math.gcd(x, 2),
    "as_integer_ratio": lambda x: x.as_integer_ratio(),
    "datetime": lambda x: __import__("datetime").timedelta(seconds=x),
    "time.sleep": lambda x: __import__("time").sleep(x),
    "array.array": lambda x: __import__("array").array("d", [x]),
    "ctypes": lambda x: __import__("ctypes").c_double(x),
    "np.fromiter": lambda x: np.fromiter([x], float),
    "np.full_like int": lambda x: np.full(3, x, dtype=int),
    "a set": lambda x: {x},
    "int array index": lambda x: X[x],
    "random": lambda x: __import__("random").Random(0).gammavariate(x, 1.0),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_conversion_is_refused_or_keeps_the_derivative(name):
    f = REFUSED[name]
    for x in (2.5, np.float64(2.5)):
        for transform in (lambda x=x: gradient(f, x)[0], lambda x=x: jvp(f, (x,), (1.0,))[1]):
            with pytest.raises((TypeError, ValueError, IndexError, AttributeError, struct.error)) as caught:
                transform()
            notes = "".join(getattr(caught.value, "__notes__", []))
            text = str(caught.value) + notes + str(caught.value.__cause__)
            assert "test_python_as_written_values.py:" in text, text
            assert "  1. " in text, text


def test_integers_convert_and_count():
    def f(n, x):
        assert (int(n), operator.index(n), n.__index__()) == (3, 3, 3)
        assert (list(range(n)), [7, 8, 9, 10][n], "ab" * n, bin(n), f"{n:04d}") == (
            [0, 1, 2],
            10,
            "ababab",
            "0b11",
            "0003",
        )
        assert math.factorial(n) == 6
        assert round(2.34567, n) == 2.346
        assert (n & 1, n | 4, n ^ 1, ~n, n << 2, n >> 1) == (1, 7, 2, -4, 12, 1)
        assert fractions.Fraction(n, 2) == fractions.Fraction(3, 2)
        assert divmod(n, 2) == (1, 1)
        assert {1: "a", 3: "b"}[int(n)] == "b"
        return x**n * n

    assert gradient(f, 3, 2.0) == (8.0 + 24.0 * math.log(2.0), 36.0)


def test_truth_and_comparisons_of_values():
    agree(lambda x: x[0] if x[0] and not x[0] > 3 and bool(x[1]) else x[1], X)
    with pytest.raises(ValueError, match="ambiguous"):
        gradient(lambda x: 1.0 if x else 0.0, X)


def test_items_and_lists_keep_their_derivative():
    agree(lambda x: x[0].item() * x.item(1) + x.reshape(3, 1).item(2, 0) ** 2 + sum(x.tolist()) * x.tolist()[1], X)
    agree(lambda x: sum(a * b for (a, b) in np.outer(x, x)[:, :2].tolist()), X)
    agree(lambda x: x[0].real * x[1].conjugate() + x[2].imag + x[0].item().real, X)


# --- numbers -----------------------------------------------------------------------------------------------------


def test_float64_of_a_value_is_refused_but_float_of_a_constant_is_free():
    agree(lambda x: np.float64(2.0) * x[0] + float(np.float32(0.5)) * np.float64(x.shape[0]) * x[1], X)


def test_fractions_turn_into_numbers_as_beside_a_float():
    agree(lambda x: fractions.Fraction(1, 3) * x[0].item() + x[1].item() / fractions.Fraction(2) + x[2], X)
    with pytest.raises(TypeError):
        decimal.Decimal(1) + 2.5
    with pytest.raises(TypeError, match="Decimal"):
        gradient(lambda x: decimal.Decimal(1) + x, 2.5)


def test_rounding_and_division_of_numbers():
    agree(lambda x: round(x[2] * 1.2345, 2) + x[0] * round(x[1]) + math.floor(x[2] + 0.3) * x[0], X)
    agree(lambda x: divmod(x[2] + 0.3, 0.7)[1] + (x[2] + 0.3) // 0.7 + (x[1] % 0.7) * pow(x[2], 3) + pow(2, x[0]), X)
    agree(lambda x: abs(x[1]) + max(x[0], x[1], 0.0) + min(x, default=0.0) + max(x, key=abs) ** 2, X)
    agree(lambda x: sum(x, start=x[0]) + sum([v * v for v in x], 0.0) + (any(x > 1) + all(x < 0)) * x[0], X)


# --- text --------------------------------------------------------------------------------------------------------

FORMATS = [
    lambda x: f"{x}",
    lambda x: f"{x!s:>10}",
    lambda x: f"{x:.3f}|{x:10.2e}|{x:+g}|{x:,}|{x:%}",
    lambda x: "{:.4f} {}".format(x, x),  # noqa: UP032
    lambda x: "%s" % x,  # noqa: UP031
    lambda x: str(x),
    lambda x: format(x, ".1f"),
    lambda x: string.Template("$x").substitute(x=x),
    lambda x: textwrap.shorten(f"{x}", 20),
    lambda x: " ".join(map(str, [x, x])),
    lambda x: f"{x:{5}.{2}}",
]


@pytest.mark.parametrize("x", [2.5, np.float64(2.5)])
def test_numbers_are_formatted_as_their_primals(x):
    for write in FORMATS:
        same_answers(write, x)


def test_arrays_are_formatted_as_their_primals():
    for write in (str, lambda x: f"{x}", lambda x: "%s" % x, lambda x: np.array2string(x, precision=2)):  # noqa: UP031
        same_answers(write, X)
    same_answers(lambda x: np.array_str(x), X)


def test_logging_shows_values(caplog):
    logger = logging.getLogger("retrograde.tests")

    def f(x):
        logger.warning("loss %s of %r at %.2f", np.sum(x), len(x), data(x[0]))
        return np.sum(x * x)

    with caplog.at_level(logging.INFO):
        close(gradient(f, X)[0], 2 * X)
    assert "loss 1.3" in caplog.text
    assert "at 0.50" in caplog.text


def test_print_shows_values_and_not_that_they_are_traced(capsys):
    gradient(lambda x: print(x[0], x.sum(), "{}".format(x[1])) or np.sum(x), X)  # noqa: UP032
    assert capsys.readouterr().out.split() == ["0.5", "1.3", "-1.2"]


# --- copies ------------------------------------------------------------------------------------------------------


def test_copies_and_deep_copies_of_structures_carry_the_derivative():
    class Model:
        def __init__(self, w):
            self.w = w
            self.layers = [w * 2, {"b": w[0]}]

    def f(x):
        m = Model(x * 1.0)
        n = copy.deepcopy(m)
        n.w[0] = 3.0
        n.layers[0][1] *= x[2]
        shallow = copy.copy(m)
        shallow.layers[1]["b"] = shallow.layers[1]["b"] * x[1]
        assert m.w[0] == x[0]
        return (
            np.sum(m.w**2) + np.sum(n.w * n.layers[0]) * m.layers[1]["b"] + copy.copy(x)[1] * copy.deepcopy([x])[0][2]
        )

    agree(f, X)


def test_a_deep_copy_keeps_what_was_one_object_one_object():
    def f(x):
        shared = np.zeros(2)
        pair = copy.deepcopy([shared, shared])
        pair[0][0] = x[0]
        twin = copy.deepcopy((x, x))
        assert twin[0] is twin[1]
        return pair[1][0] * x[1] + twin[0][2]

    agree(f, X)


# --- inside ignore -----------------------------------------------------------------------------------------------


def test_inside_of_ignore_everything_converts():
    seen: list[Any] = []

    def f(x):
        with ignore():
            seen.append((float(x[0]), int(x[2]), "%.1f" % x[1], json.dumps(x.tolist()), np.float64(x[0]), hash(x[0])))  # noqa: UP031
        return np.sum(x)

    gradient(f, X)
    assert seen[0][:5] == (0.5, 2, "-1.2", "[0.5, -1.2, 2.0]", 0.5)


def test_what_array_consumers_ask_of_a_parameter_is_refused_with_the_way_out():
    w = param([1.0, 2.0])
    for consume in (np.asarray, memoryview, lambda w: np.frombuffer(w), lambda w: bytes(w)):
        with pytest.raises((TypeError, ValueError, RetrogradeError)):
            consume(w)
    with pytest.raises(ConversionError, match="data"):
        np.asarray(w)


# --- who converted it --------------------------------------------------------------------------------------------

SIN = {"sin": math.sin}
CULPRITS = [
    (lambda x: scipy.linalg.solve(np.eye(3), x)[0], X, "in scipy.linalg.solve(...) would", "np.linalg.solve, which"),
    (lambda x: RNG.normal(x), 2.0, "in RNG.normal(...) would", "mu + sigma * rng.normal()"),
    (lambda x: random.Random(0).gammavariate(x, 1.0), 2.0, "gammavariate(...) would", "scaled and shifted"),
    (lambda x: np.polyval([x, 1.0], 2.0), 2.0, "in np.polyval(...) would", "np.polyval(np.array([a, b]))"),
    (lambda x: statistics.mean([x, 1.0]), 2.0, "in statistics.mean(...) would", "np.mean, which"),
    (lambda x: cmath.exp(x), 2.0, "in cmath.exp(...) would", "np.exp, which"),
    (lambda x: SIN["sin"](x), 2.0, "in SIN['sin'](...) would", "math.sin(x) or np.sin(x)"),
    (lambda x, sine=math.sin: sine(x), 2.0, "in sine(...) would", "math.sin(x) or np.sin(x)"),
    (lambda x, asarray=np.asarray: asarray(x)[0], X, "in asarray(...) would", "np.asarray(x)"),
    (lambda x: np.float64(x), 2.0, "np.float64(x) would", "x.astype(np.float64)"),
    (lambda x: (lambda: float(x))(), 2.0, "float(x) would", "np.* and math.*"),
    (lambda x: scipy.integrate.quad(lambda t: t * x, 0, 1)[0], 2.0, "in scipy.integrate.quad(...) would", "primitive("),
]
RNG = np.random.default_rng(0)


def test_a_function_of_scipy_that_is_itself_differentiated_is_named():
    with pytest.raises(ConversionError, match=r"in norm\(\.\.\.\) would") as caught:
        gradient(scipy.linalg.norm, X)
    assert "  1. np.linalg.norm, which has a derivative rule" in str(caught.value)


@pytest.mark.parametrize(("f", "x", "who", "way"), CULPRITS)
def test_a_conversion_in_another_function_names_the_function_and_what_to_write_instead(f, x, who, way):
    for transform in (lambda: gradient(f, x), lambda: jvp(f, (x,), (x,))):
        with pytest.raises(ConversionError) as caught:
            transform()
        assert who in str(caught.value), caught.value
        assert way in str(caught.value), caught.value
        assert "test_python_as_written_values.py:" in str(caught.value) or "(<string>" in str(caught.value)


def test_the_function_is_named_where_there_is_no_source():
    scope = {"sp": scipy.linalg, "np": np}
    exec("def f(x):\n    return sp.lu_factor(np.outer(x, x))[0][0, 0]", scope)
    with pytest.raises(ConversionError, match=r"in lu_factor\(\.\.\.\) would"):
        gradient(scope["f"], X)


def test_what_scipy_itself_raises_gets_a_note_with_the_function_and_the_line():
    with pytest.raises(TypeError) as caught:
        gradient(lambda x: scipy.linalg.expm(np.diag(x))[0, 0], X)
    (note,) = caught.value.__notes__
    assert "scipy.linalg.expm(...)" in note
    assert "(test_python_as_written_values.py:" in note
    assert "  1. primitive(scipy.linalg.expm).defpullback" in note
    with pytest.raises(TypeError) as caught:
        gradient(lambda x: scipy.linalg.solve(np.eye(3), x, check_finite=False)[0], X)
    assert "  1. np.linalg.solve, which" in str(caught.value) + "".join(getattr(caught.value, "__notes__", []))
