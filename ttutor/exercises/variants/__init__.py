"""Exercises of the chapter on variants: one module each."""
