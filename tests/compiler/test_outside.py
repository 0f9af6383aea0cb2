"""What a function reads from outside: its value and all its derivatives belong to what was there when it was compiled
first, and where that cannot be, it is said."""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import pytest
from truth import close

import retrograde as rg
from retrograde.compiler.outside import Outside
from retrograde.errors import InputError

numba = pytest.importorskip("numba")

gravity = 9.81
unread = 1.0
elements = np.array([1.0, 2.0])
large = np.ones(200_000)
with_gaps = np.ones((4, 4))[::2, ::2]
pair = (2.0, np.array([3.0]))
constants = types.ModuleType("constants")
constants.scale = 2.0  # type: ignore[attr-defined]
constants.data = 0.0  # type: ignore[attr-defined]


def helper(x):
    return x * gravity


def of_a_global(x):
    return gravity * x


def of_a_helper(x):
    return helper(x)


def of_a_module(x):
    return x * constants.scale


def of_elements(x):
    return x * elements[0]


def of_a_pair(x):
    return x * pair[1][0]


CHANGES = {
    of_a_global: lambda patch: patch.setitem(globals(), "gravity", 1.0),
    of_a_helper: lambda patch: patch.setitem(globals(), "gravity", 1.0),
    of_a_module: lambda patch: patch.setattr(constants, "scale", 1.0),
    of_elements: lambda _: elements.__setitem__(0, 7.0),
    of_a_pair: lambda _: pair[1].__setitem__(0, 7.0),
}


@pytest.fixture
def patch():
    """As `monkeypatch`; it puts back what stands in arrays as well."""
    kept = elements.copy(), pair[1].copy(), large.copy(), with_gaps.copy()
    with pytest.MonkeyPatch.context() as patch:
        yield patch
    for array, values in zip((elements, pair[1], large, with_gaps), kept, strict=True):
        array[...] = values


@pytest.mark.usefixtures("as_plain_python")
@pytest.mark.parametrize("f", CHANGES)
def test_derivatives_that_are_made_after_a_change_belong_to_the_value(f, patch):
    c = rg.compile(f, cache=False)
    value, slope = c(2.0), f(1.0)
    CHANGES[f](patch)
    assert c(2.0) == value
    assert f(2.0) != value
    close(rg.gradient(c, 2.0)[0], slope)
    close(rg.jvp(c, (2.0,), (1.0,))[1], slope)
    close(rg.gradient(lambda x: c(x) ** 2, 2.0)[0], 2 * value * slope)


@pytest.mark.usefixtures("as_plain_python")
@pytest.mark.parametrize("f", CHANGES)
def test_a_value_that_is_compiled_after_a_change_is_refused(f, patch):
    c = rg.compile(f, cache=False)
    before = rg.gradient(c, 2.0)
    CHANGES[f](patch)
    assert rg.gradient(c, 2.0) == before
    with pytest.raises(InputError, match=f"reads from outside, .* since {f.__name__} was compiled first") as caught:
        c(2.0)
    assert "test_outside.py:" in str(caught.value)
    again = rg.compile(f, cache=False)
    assert again(2.0) == f(2.0) == 2.0 * rg.gradient(again, 2.0)[0]


@pytest.mark.usefixtures("as_plain_python")
def test_arguments_of_other_types_come_with_the_same_values_or_none(patch):
    c = rg.compile(of_a_global, cache=False)
    assert c(2.0) == 19.62
    patch.setitem(globals(), "gravity", 1.0)
    with pytest.raises(InputError, match=r"gravity, which of_a_global reads from outside, was 9\.81 and is 1\.0 since"):
        c(np.ones(2))
    with pytest.raises(InputError, match="gravity"):
        numba.njit(lambda x: c(x))(np.float32(2.0))  # numba compiles it for others as well
    assert c(2.0) == 19.62


@pytest.mark.usefixtures("as_plain_python")
def test_arrays_that_numba_reads_where_they_are_are_read_there_by_derivatives(patch):
    def f(x):
        return x * large[0] + x * with_gaps[1, 1] + x * elements[1]

    c = rg.compile(f, cache=False)
    assert (c(2.0), rg.gradient(c, 2.0)) == (8.0, (4.0,))
    large[0], with_gaps[1, 1], elements[1] = 10.0, 100.0, 1000.0
    assert (c(2.0), rg.gradient(c, 2.0)) == (224.0, (112.0,))  # of `elements` there are copies


@pytest.mark.usefixtures("as_plain_python")
def test_what_is_not_read_may_change(patch):
    limit: Any = None

    def f(x):
        return x * constants.scale + x.real * 0.0

    def reads_its_closure(x):
        return x * limit

    c = rg.compile(f, cache=False)
    rg.gradient(c, 2.0)
    patch.setattr(constants, "data", 1.0)
    patch.setitem(globals(), "unread", 2.0)
    assert c(2.0) == 4.0
    broken = rg.compile(reads_its_closure, cache=False)
    with pytest.raises(rg.errors.RetrogradeError):
        broken(2.0)
    limit = 3.0  # nothing had been compiled
    assert (broken(2.0), rg.gradient(broken, 2.0)) == (6.0, (3.0,))


def test_numbers_that_are_equal_are_told_apart_and_nan_is_itself(patch):
    outside = Outside(of_a_global)
    for value in (9.81, np.float64(9.81)):
        patch.setitem(globals(), "gravity", value)
        if type(value) is float:
            outside.check()
        else:
            with pytest.raises(InputError):
                outside.check()
    patch.setitem(globals(), "gravity", float("nan"))
    nan = Outside(of_a_global)
    patch.setitem(globals(), "gravity", float("-nan"))
    nan.check()
    patch.setitem(globals(), "gravity", 0.0)
    zero = Outside(of_a_global)
    patch.setitem(globals(), "gravity", -0.0)
    with pytest.raises(InputError):
        zero.check()


KEPT = """
import retrograde as rg
g = 2.0

@rg.compile
def f(x):
    return x * g

@rg.primitive
def own(x):
    return x * x

@rg.compile
def ruled(x):
    return own(x) * 1.0
"""


def kept_module(path: Any) -> Any:
    sys.modules.pop("kept_outside", None)
    module = types.ModuleType("kept_outside")
    module.__file__ = str(path)
    sys.modules["kept_outside"] = module
    exec(compile(path.read_text(), str(path), "exec"), vars(module))
    return module


@pytest.fixture
def kept(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    path = tmp_path / "kept_outside.py"
    path.write_text(KEPT)
    return path


def test_what_is_kept_on_disk_belongs_to_the_values_of_its_key(kept):
    first = kept_module(kept)
    assert first.f(3.0) == 6.0
    second = kept_module(kept)
    assert second.f(3.0) == 6.0  # from disk: it has not been lowered here
    second.g = 5.0
    with pytest.raises(InputError, match=r"g, which f reads from outside, was 2\.0 and is 5\.0"):
        rg.gradient(second.f, 3.0)
    assert rg.gradient(kept_module(kept).f, 3.0) == (2.0,)
    third = kept_module(kept)
    third.g = 5.0
    assert (third.f(3.0), rg.gradient(third.f, 3.0)) == (15.0, (5.0,))
    second.g = 5.0
    with pytest.raises(InputError, match="g, which f"):
        rg.jvp(second.f, (3.0,), (1.0,))


def test_a_rule_that_is_defined_after_the_first_call_is_kept_under_no_key_without_it(kept):
    for factor in (2.0, 20.0):
        module = kept_module(kept)
        assert module.ruled(3.0) == 9.0
        path = kept.parent / f"rule_{factor}.py"
        path.write_text(f"def slope(y, x):\n    return lambda y_bar: (y_bar * {factor} * x,)\n")
        names: dict[str, Any] = {}
        exec(compile(path.read_text(), str(path), "exec"), names)
        module.own.defpullback(names["slope"])
        assert rg.gradient(module.ruled, 3.0) == (factor * 3.0,)
