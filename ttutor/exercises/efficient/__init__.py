"""Exercises of the chapter on efficient attention: one module each."""
