"""Exercises of the chapter on attention: one module each."""
