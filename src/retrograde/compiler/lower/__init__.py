"""From the syntax tree to the form. Each module adds one layer to the one before:

builder.py       emits statements: operations, loads, loops, guards
arrays.py        whole-array expressions, lazily, until a loop over their elements is needed; reductions
indexing.py      subscripts: elements, views, gathers, and what can be assigned to them
functions/       NumPy's functions and methods by name, one subject a file
frame.py         one function while it is lowered
descriptions.py  what messages call a value
operators.py     operators, comparisons, choices
expressions.py   all other expressions
names.py         what names mean, and where paths meet
statements.py    assignments, returns, assertions, exceptions
flow.py          branches and loops
calls.py         other Python functions, inlined at their call
procedures.py    those that call themselves, as programs of their own
function.py      a whole function
formulas.py      the derivatives of whole-array functions, from the source of their rules
"""
