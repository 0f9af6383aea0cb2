"""Owns the way from a Python function to native derivatives: source → form → derivative program → text → numba.

Knows source code and the form it becomes; must not know tapes and levels, except in `bridge.py` and `at_once.py`, where
a compiled function becomes a primitive of the eager engine. numba is imported when a compiled function is first called.

The passes, in order (docs/decisions/0013-the-compiler.md draws them):

source.py      the text, globals, closure and defaults of a function
normalise.py   break, continue, return and loop else become guards
lower/         the syntax tree becomes the form: scalars, element loops, views, whole-array operations
optimise/      one pass a file; each keeps a program's meaning and can be switched off
activity.py    what depends on the inputs and reaches the outputs
pullback.py    the program of the pullback          tangent.py   the program of the derivative along a direction
emit.py        the form becomes readable Python     machine/     the form becomes LLVM's text
native.py      numba compiles either
compiled.py    the object that the user holds       bridge.py    the same as a primitive of the eager engine
at_once.py     a call in one transform, quickly      each.py         a program run for each of many examples
examples.py    many calls in one native loop        kept.py      what outlives the process, under a fingerprint.py
explain.py     what a pullback keeps                segments.py  checkpoints of long loops
elements.py    loops over the elements of arrays    lanes.py     several directions in one program
parts.py       what directions share, once           dependence.py  what depends on a direction
outside.py     what a function reads from outside, as it was when it was compiled first

The form is in five files: program.py holds a function, form.py the statements, types.py the types of its names,
walks.py goes through statements and copies them, and known.py says what, beside types, is known when it is compiled.

A pullback is made by one class in layers (reverse.py drives it), each a file:

cotangents.py  cotangents and shadows      tapes.py         what an adjoint in a loop needs: tape, or recompute.py
reverse.py     the statements              reverse_loops.py, with reexecute.py and one_sweep.py
                                           reverse_calls.py
"""
