"""Every example of Zygote's page on its utilities, in Python, printed text included.

Julia's integers stay integers there and count as floats here; its indices start at one.
"""

from __future__ import annotations

import operator

import numpy as np
import pytest
from truth import close

from retrograde import (
    Buffer,
    DroppedGradientWarning,
    dropgrad,
    forwarddiff,
    gradient,
    hessian,
    hook,
    ignore,
    istracked,
    showgrad,
)


def test_showgrad_shows_the_gradient_about_to_accumulate(capsys):
    assert gradient(lambda a, b: showgrad(a) * b, 2, 3) == (3.0, 2.0)
    assert capsys.readouterr().out == "∂(a) = 3.0\n"


def test_showgrad_depends_on_how_its_output_is_used(capsys):
    assert gradient(lambda a: showgrad(a) * a, 2) == (4.0,)
    assert capsys.readouterr().out == "∂(a) = 2.0\n"


def test_showgrad_of_what_is_not_used_shows_none(capsys):
    def f(a, b):
        showgrad(a)  # not used, so no gradient
        return a * b

    assert gradient(f, 2, 3) == (3.0, 2.0)
    assert capsys.readouterr().out == "∂(a) = None\n"


def test_a_hook_may_show_the_gradient(capsys):
    assert gradient(lambda a, b: hook(lambda ā: print(f"{ā = !s}"), a) * b, 2, 3) == (3.0, 2.0)
    assert capsys.readouterr().out == "ā = 3.0\n"


def test_a_hook_may_change_the_gradient():
    assert gradient(lambda a, b: hook(operator.neg, a) * b, 2, 3) == (-3.0, 2.0)
    assert gradient(lambda a, b: hook(lambda ā: -ā, a) * b, 2, 3) == (-3.0, 2.0)


def test_dropgrad_drops_the_gradient():
    assert gradient(lambda a, b: dropgrad(a) * b, 2, 3) == (None, 2.0)


def test_the_hessian_of_a_product():
    def product(ab):
        a, b = ab
        return a * b

    close(hessian(product, [2, 3]), [[0.0, 1.0], [1.0, 0.0]])
    assert repr(hessian(lambda ab: ab[0] * ab[1], [2, 3])) == "array([[0., 1.],\n       [1., 0.]])"


def vstack(xs):
    buf = Buffer(xs, len(xs), 5)
    for i in range(5):
        buf[:, i] = xs
    return buf.copy()


def test_a_buffer_is_filled_by_columns():
    stacked = vstack([1, 2, 3])
    assert stacked.dtype == np.int64
    assert stacked.tolist() == [[1] * 5, [2] * 5, [3] * 5]
    assert (vstack(np.array([1, 2, 3])) == stacked).all()


def test_a_buffer_passes_the_gradient_on():
    assert gradient(lambda x: np.sum(vstack(x)), [1, 2, 3]) == ([5.0, 5.0, 5.0],)
    close(gradient(lambda x: np.sum(vstack(x)), np.array([1, 2, 3]))[0], [5.0, 5.0, 5.0])


def test_a_buffer_is_made_as_similar_makes_an_array():
    xs = np.ones((2, 3))
    assert Buffer(xs).shape == (2, 3)
    assert Buffer(xs, 5).shape == (5,)
    assert Buffer(xs, 5, 2).shape == Buffer(xs, (5, 2)).shape == (5, 2)
    assert Buffer(xs.astype(np.float32), 5).dtype == np.float32


def test_a_buffer_cannot_be_used_for_linear_algebra():
    buf = Buffer(np.ones((2, 2)))
    assert not isinstance(buf, np.ndarray)
    for use in (
        lambda: buf @ buf,
        lambda: np.ones((2, 2)) @ buf,
        lambda: np.linalg.inv(buf),
        lambda: np.matmul(buf, buf),
    ):
        with pytest.raises(TypeError):
            use()


def test_a_buffer_becomes_immutable_by_being_copied_and_the_copy_takes_no_memory():
    buf = Buffer(np.ones(2))
    buf[:] = [1.0, 2.0]
    array = buf.copy()
    with pytest.raises(RuntimeError):
        buf[0] = 3.0
    close(array, [1.0, 2.0])
    assert np.shares_memory(array, buf.copy())


def power(x, n):
    r = np.ones_like(x)
    for _ in range(n):
        r *= x
    return r


def power_of_a_number(x, n):
    r = 1
    for _ in range(n):
        r *= x
    return r


@pytest.mark.parametrize("pow", [power, power_of_a_number])
def test_forwarddiff_of_a_loop(pow):
    result = gradient(lambda x: forwarddiff(lambda x: pow(x, 2), x), 5)
    assert result == (10.0,)


def test_forwarddiff_drops_gradients_for_closed_over_values():
    with pytest.warns(DroppedGradientWarning):
        assert gradient(lambda a, b: forwarddiff(lambda a: a * b, a), 2, 3) == (3.0, None)


def test_forwarddiff_with_b_passed_through_explicitly():
    def product(ab):
        a, b = ab
        return a * b

    assert gradient(lambda a, b: forwarddiff(product, [a, b]), 2, 3) == (3.0, 2.0)


def test_an_ignored_block_runs_as_normal_and_is_not_differentiated():
    log = []

    def f(x):
        y = x * x
        with ignore():
            log.append(f"y = {y:.1f}")
            z = y * 100
        assert not istracked(z)
        return y

    assert gradient(f, 3.0) == (6.0,)
    assert log == ["y = 9.0"]


def test_an_ignored_block_gives_incorrect_gradients_if_it_is_used_incorrectly():
    assert gradient(lambda x: x * ignore(lambda: x * 1.0), 3.0) == (3.0,)
