"""Owns reverse mode: the tape, the sweep, parameters, gradients and pullbacks.

Must not know forward mode, nor any formula.
"""
