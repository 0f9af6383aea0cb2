"""Owns what is built of the two modes: Zygote's tools, Jacobians and Hessians.

Must not know a formula, nor how a tape is swept.
"""
