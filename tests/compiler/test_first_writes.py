"""Sums that begin with a zero are stored, where nothing else can have touched the place."""

from __future__ import annotations

import numpy as np
import pytest
from compiler.harness import check, specialised
from truth import close

from retrograde.compiler.variant import Which

X = np.array([0.7, -0.3, 1.2, 0.4, 0.9])
A = np.linspace(-1.0, 1.0, 12).reshape(3, 4)


def elementwise(x):
    s = 0.0
    for i in range(len(x)):
        s += np.sin(x[i])
    return s


def rows_through_views(a):
    s = 0.0
    for i in range(a.shape[0]):
        row = a[i]
        tail = row[2:4]
        s += row[0] * tail[0] * tail[1]
    return s


def nested(a):
    s = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            s += a[i, j] ** 2
    return s


def only_where(x):
    s = 0.0
    for i in range(len(x)):
        if x[i] > 0.5:
            s += x[i] ** 3
    return s


def in_either_branch(x):
    s = 0.0
    for i in range(len(x)):
        if x[i] > 0.5:
            s += x[i] ** 3
        else:
            s += np.cos(x[i])
    return s


def neighbours(x):
    s = 0.0
    for i in range(1, len(x)):
        s += x[i] * x[i - 1]
    return s


def twice(x):
    s = 0.0
    for i in range(len(x)):
        y = np.exp(x[i])
        s += y * x[0]
    return s


def gathered(x):
    s = 0.0
    places = np.array([0, 2, 2, 1])
    for i in range(4):
        s += x[places[i]] ** 2
    return s


def from_the_end(x):
    s = 0.0
    for i in range(-2, 3):
        s += x[i] ** 2
    return s


def two_loops(x):
    s = 0.0
    for i in range(len(x)):
        s += x[i] ** 2
    for i in range(len(x)):
        s += np.cos(x[i] * s)
    return s


def repeated(x):
    s = 0.0
    for _ in range(3):
        for i in range(len(x)):
            s += x[i] * s + x[i]
    return s


def columns(a):
    s = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            s += a[i, 0] * a[i, j]
    return s


STORED = [(elementwise, X), (rows_through_views, A), (nested, A), (only_where, X), (in_either_branch, X)]
ADDED = [(neighbours, X), (gathered, X), (from_the_end, X), (repeated, X), (columns, A), (twice, X)]


def writes(f, x, kind="T", order=0):
    """The lines that write into the cotangent of the argument."""
    text = specialised(f, (x,)).text(kind, order)
    return [line for line in text.splitlines() if "_bar" in line.split("=")[0] and "[" in line.split("=")[0]]


@pytest.mark.parametrize(("f", "x"), STORED, ids=lambda v: getattr(v, "__name__", ""))
def test_places_that_are_touched_once_are_stored(f, x):
    assert all("+=" not in line for line in writes(f, x))
    assert all("+=" not in line for line in writes(f, x, "T", 1))
    check(f, (x,))


@pytest.mark.parametrize(("f", "x"), ADDED, ids=lambda v: getattr(v, "__name__", ""))
def test_places_that_may_be_touched_again_are_added_to(f, x):
    assert any("+=" in line for line in writes(f, x))
    check(f, (x,))


def test_only_the_first_of_two_loops_stores():
    lines = writes(two_loops, X)
    assert any("+=" in line for line in lines)
    assert any("+=" not in line for line in lines)
    check(two_loops, (X,))


def test_the_cotangent_of_an_array_that_is_written_has_contents_before():
    def f(x):
        for i in range(len(x)):
            x[i] = np.sin(x[i])

    check(f, (X,))


# --- arrays of which every element is stored --------------------------------------------------------------------------


def bundle(a):
    s = 0.0
    for i in range(a.shape[0]):
        row = a[i]
        s += row[0] * row[1] + np.sin(row[2])
    return s


def first_rows(a, n):
    s = 0.0
    for i in range(n):
        for j in range(a.shape[1]):
            s += a[i, j] ** 3
    return s


def diagonal(a):
    s = 0.0
    for i in range(a.shape[0]):
        s += a[i, i] ** 2
    return s


def filled(f, *args):
    """Whether the first argument's cotangent needs no zeros for some arguments."""
    of = specialised(f, args)
    given = dict(zip(of.leaves, args, strict=True))
    parameters = of.call(of.usual, Which("T", 0)).parameters
    return next(p.is_filled(args[0].shape, given) for p in parameters if p.role == ("x_bar", 0))


def test_an_array_of_which_each_element_is_stored_needs_no_zeros():
    assert filled(elementwise, X)
    assert filled(nested, A)
    assert not filled(neighbours, X)
    assert not filled(repeated, X)
    assert not filled(diagonal, np.eye(3))


@pytest.mark.parametrize(("shape", "is_so"), [((4, 3), True), ((4, 4), False), ((1, 3), True), ((0, 3), True)])
def test_the_shapes_decide_where_only_some_places_are_stored(shape, is_so):
    a = np.linspace(0.2, 1.0, shape[0] * shape[1]).reshape(shape)
    assert filled(bundle, a) == is_so
    if a.size:
        check(bundle, (a,))


@pytest.mark.parametrize("n", [2, 3])
def test_a_number_decides_where_it_is_the_end_of_a_loop(n):
    assert filled(first_rows, A, n) == (n == len(A))
    check(first_rows, (A, n))


def test_arrays_of_the_programs_own_are_not_zeroed_where_each_element_is_stored():
    def f(x):
        y = np.zeros(len(x))
        for i in range(len(x)):
            y[i] = np.sin(x[i])
        return y

    of = specialised(f, (X,))
    assert of.text("J", 1).count(" = np.empty(") == 2
    check(f, (X,))


def test_one_program_for_two_shapes():
    of = specialised(bundle, (np.ones((2, 3)),))
    for shape in ((2, 3), (2, 5), (3, 3)):
        a = np.linspace(0.2, 1.0, shape[0] * shape[1]).reshape(shape)
        want = np.zeros(shape)
        want[:, 0], want[:, 1], want[:, 2] = a[:, 1], a[:, 0], np.cos(a[:, 2])
        close(of.evaluate("T", 0, {("x", 0): a, ("y_bar", 0): 1.0})["x_bar", 0], want)
