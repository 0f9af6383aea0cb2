"""Owns forward mode: tangents carried along with the values.

Must not know tapes, nor any formula.
"""
