"""What the text of every program begins with: the functions that it calls."""

HEAD = '''"""{title}"""

import math

import numpy as np
{imports}

def times(g, partial):
    """The product, which is zero where g is zero, though the partial be infinite or NaN."""
    product = g * partial
    return 0.0 if g == 0.0 and product != product else product


def per(g, length):
    """The quotient; of complex numbers, too, no error where the length is zero."""
    return g / length if length != 0.0 else g * np.inf


def over(g, length):
    """The quotient, which is zero where g is zero."""
    return 0.0 * g if g == 0.0 else per(g, length)


def along(x, ratio):
    """The product, which is zero where one of the two is zero, though the other be infinite or NaN."""
    product = x * ratio
    return 0.0 if product != product and (x == 0.0 or ratio == 0.0) else product


def grown(tape):
    """The tape with twice the space."""
    longer = np.empty(2 * tape.shape[0], tape.dtype)
    for i in range(tape.shape[0]):
        longer[i] = tape[i]
    return longer


def with_elements(tape, top, array):
    """The tape with all elements of an array behind its first `top`."""
    while top + array.size > tape.shape[0]:
        tape = grown(tape)
    for x in array.flat:
        tape[top] = x
        top += 1
    return tape

'''
