"""Exercises of the chapter on training."""
