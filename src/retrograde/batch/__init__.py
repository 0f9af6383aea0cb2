"""Owns batch mode: a function of one example, mapped over many examples at once.

Must not know tapes nor derivatives: how a function maps is said in NumPy functions, which other levels differentiate.
"""
