"""Owns Taylor mode: truncated power series carried along with the values.

Must not know tapes. It knows the series of the elementary functions, which are identities between coefficients and not
derivatives; every derivative that it uses is one of the table of rules.
"""
