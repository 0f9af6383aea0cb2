"""Owns the way from the form to LLVM's text, which numba takes without a look at it.

Knows the form and numba; must not know derivatives. What has no text here is compiled from the Python text (emit.py).

scalars.py   numbers: literals, conversions, operations        statements.py   statements, loops, branches
memory.py    arrays: elements, parts, allocation               abreast.py      loops whose iterations run side by side
vectors.py   numbers of which each of these has one            text.py         the functions of a program together
frame.py     a function: names, parameters, its end            kernel.py       the text in numba's library of code
calls.py     calls of functions, and stacks                 functions.py    those of vectormath.py
threads.py   loops over threads                             written.py     what a caller has to know of a text
"""
