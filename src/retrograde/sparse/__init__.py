"""Owns what is sparse: the mode that finds patterns, colourings, the layout of compressed derivatives.

Must not know how a tangent is seeded or a tape is swept, nor any formula: who computes the passes is above it.
"""
