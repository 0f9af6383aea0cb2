"""`np.pad`: the body is NumPy's own result in every mode, and refuses what NumPy refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrograde.errors import UnsupportedArgumentError
from retrograde.rules.numpy_padding import pad_body

OPTIONS: dict[str, list[dict[str, Any]]] = {
    "constant": [{}, {"constant_values": 3}, {"constant_values": (1.5, 2)}, {"constant_values": ((1, 2), (3, 4))}],
    "linear_ramp": [{}, {"end_values": ((5,),)}, {"end_values": [[1], [2]]}],
    "maximum": [{}, {"stat_length": 1}],
    "minimum": [{"stat_length": ((1, 2),)}, {"stat_length": None}],
    "mean": [{}, {"stat_length": ((2, 1), (1, 9))}],
    "median": [{}],
    "reflect": [{}, {"reflect_type": "odd"}],
    "symmetric": [{"reflect_type": "even"}, {"reflect_type": "odd"}],
    "edge": [{}],
    "wrap": [{}],
}
CASES = [(mode, options) for mode, each in OPTIONS.items() for options in each]
WIDTHS = st.tuples(*[st.tuples(st.integers(0, 9), st.integers(0, 9))] * 2)


@pytest.mark.parametrize(("mode", "options"), CASES)
@given(shape=st.tuples(st.integers(1, 4), st.integers(1, 4)), widths=WIDTHS)
@settings(max_examples=10)
def test_body_gives_what_numpy_gives(mode: Any, options: Any, shape: Any, widths: Any) -> None:
    x = np.random.default_rng(0).uniform(1, 2, shape)
    np.testing.assert_allclose(pad_body(x, widths, mode, **options), np.pad(x, widths, mode, **options), atol=1e-13)


@pytest.mark.parametrize(
    "widths", [1, (2,), (1, 2), [[1, 2]], ((1,), (2,)), np.array([[0, 1], [2, 0]]), {-1: (1, 2), 0: 3}]
)
def test_widths_come_in_every_form(widths: Any) -> None:
    x = np.ones((2, 3))
    expected = [(3, 3), (1, 2)] if isinstance(widths, dict) else widths
    np.testing.assert_array_equal(pad_body(x, widths), np.pad(x, expected))


def test_padding_of_mode_empty_is_zero() -> None:
    np.testing.assert_array_equal(pad_body(np.ones(1), 1, "empty"), [0, 1, 0])


def test_empty_axis_is_padded_with_constants() -> None:
    np.testing.assert_array_equal(pad_body(np.zeros((0, 1)), ((1, 0), (0, 0)), constant_values=2), [[2]])


def test_infinite_edge_does_not_spoil_the_other_side_of_an_odd_reflection() -> None:
    x = np.array([1, 2, np.inf])
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(
            pad_body(x, (1, 0), "reflect", reflect_type="odd"), np.pad(x, (1, 0), "reflect", reflect_type="odd")
        )


def test_single_precision_stays_single() -> None:
    x = np.ones(3, np.float32)
    for mode, options in [("constant", {"constant_values": 0.1}), ("reflect", {"reflect_type": "odd"}), ("mean", {})]:
        assert pad_body(x, 1, mode, **options).dtype == np.float32


def test_function_as_mode_is_refused_with_a_way_out() -> None:
    def fill(vector: Any, width: Any, axis: Any, options: Any) -> None: ...

    with pytest.raises(UnsupportedArgumentError, match=r"mode='fill'.*\n  1\. "):
        pad_body(np.ones(2), 1, fill)


@pytest.mark.parametrize(
    ("args", "options", "message"),
    [
        ((1, "middle"), {}, "mode 'middle' is not supported"),
        ((1, "edge"), {"constant_values": 1}, "unsupported keyword arguments"),
        ((-1,), {}, "can't contain negative"),
        ((1, "maximum"), {"stat_length": 0}, "stat_length of 0"),
        ((1,), {"constant_values": (1, 2, 3)}, "cannot broadcast"),
    ],
)
def test_what_numpy_refuses_is_refused(args: Any, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pad_body(np.ones(2), *args, **options)


def test_empty_axis_has_no_edge() -> None:
    with pytest.raises(ValueError, match="can't extend empty axis 0"):
        pad_body(np.ones(0), 1, "edge")


def test_widths_must_be_integers() -> None:
    with pytest.raises(TypeError, match="integral"):
        pad_body(np.ones(2), 1.5)
