"""Two minimisations with a derivative inside a derivative, each in the four mixtures of forward and reverse mode.

*Particle.* A particle is pushed away by two charges, whose field is the gradient of a potential. Its path is computed
by Euler's method until it hits the floor; where one of the charges must stand for it to arrive at the origin is found
by gradient descent. So the gradient of the potential stands inside of a function that is differentiated itself.

*Saddle.* The saddle point of (x₁² + y₁²) - (x₂² + y₂²) by gradient descent, each of whose function values is a maximum
that is found by gradient descent in turn.

Source: Siskind and Pearlmutter (2008), "Using polyvariant union-free flow analysis to compile a higher-order
functional-programming language with a first-class derivative operator to efficient Fortran-like code", section 6;
Pearlmutter and Siskind (2008), "Using programming language theory to make automatic differentiation sound and
efficient". The results are those that they published. Takes two minutes or so: the saddle point alone is found with a
hundred thousand gradients in functions that are themselves differentiated.
"""

import itertools
import math
import os
import time

from retrograde import gradient, jvp

PUBLISHED = {"particle": [0.2071918746486119], "saddle": [8.246324826140356e-06] * 4}
# The tests are content with fewer and longer steps.
QUICK = {"particle": {"tolerance": 1e-3, "step": 3e-3}, "saddle": {"tolerance": 1e-3, "step": 0.1}}


def reverse(f, x):
    """The gradient by one reverse sweep."""
    return gradient(f, x)[0]


def forward(f, x):
    """The gradient by one run for each element."""
    units = [[float(i == j) for j in range(len(x))] for i in range(len(x))]
    return [jvp(f, (x,), (unit,))[1] for unit in units]


MODES = {"R": reverse, "F": forward}


def length(v):
    return math.sqrt(sum(a * a for a in v))


def difference(v, w):
    return [a - b for a, b in zip(v, w, strict=True)]


def argmin(f, x, derivative, tolerance, step):
    """Descent with a step that doubles after ten steps that went down and is halved after one that went up."""
    value, slope, successes = f(x), derivative(f, x), 0
    while length(slope) > tolerance:
        if successes == 10:
            step, successes = 2 * step, 0
            continue
        moved = [a - step * b for a, b in zip(x, slope, strict=True)]
        if length(difference(x, moved)) <= tolerance:
            break
        moved_value = f(moved)
        if moved_value < value:
            x, value, slope, successes = moved, moved_value, derivative(f, moved), successes + 1
        else:
            step, successes = step / 2, 0
    return x


def argmax(f, x, *options):
    return argmin(lambda x: -f(x), x, *options)


def particle(outer, inner, tolerance=1e-5, step=1e-5):
    """The place of the charge that steers the particle to the origin."""

    def landing(w):
        charges = [[10.0, 10.0 - w[0]], [10.0, 0.0]]

        def potential(x):
            return sum(1 / length(difference(x, charge)) for charge in charges)

        place, speed, dt = [0.0, 8.0], [0.75, 0.0], 0.1
        while True:
            push = inner(potential, place)
            moved = [a + dt * b for a, b in zip(place, speed, strict=True)]
            if moved[1] <= 0:
                remaining = -place[1] / speed[1]
                return (place[0] + remaining * speed[0]) ** 2
            place, speed = moved, [a - dt * b for a, b in zip(speed, push, strict=True)]

    return argmin(landing, [0.0], outer, tolerance, step)


def saddle(outer, inner, tolerance=1e-5, step=1e-5):
    """The saddle point (x₁, y₁, x₂, y₂)."""
    start = [1.0, 1.0]

    def height(first, second):
        return (first[0] ** 2 + first[1] ** 2) - (second[0] ** 2 + second[1] ** 2)

    def best_answer(first):
        return argmax(lambda second: height(first, second), start, inner, tolerance, step)

    first = argmin(lambda first: height(first, best_answer(first)), start, outer, tolerance, step)
    return [*first, *best_answer(first)]


def main():
    is_quick = bool(os.environ.get("RETROGRADE_QUICK"))
    for problem in (particle, saddle):
        quick = QUICK[problem.__name__] if is_quick else {}
        for outer, inner in itertools.product(MODES, repeat=2):
            start = time.perf_counter()
            result = problem(MODES[outer], MODES[inner], **quick)
            seconds = time.perf_counter() - start
            print(f"{problem.__name__} {outer}{inner}  {', '.join(f'{x:.15g}' for x in result)}  {seconds:.1f} s")
        if not quick:
            print(f"published    {', '.join(f'{x:.15g}' for x in PUBLISHED[problem.__name__])}")


if __name__ == "__main__":
    main()
