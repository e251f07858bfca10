"""Exercises of the chapter on multi-head attention: one module or folder each."""
