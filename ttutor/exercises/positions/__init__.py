"""Exercises of the chapter on positions: one module each, its mistakes beside it."""
