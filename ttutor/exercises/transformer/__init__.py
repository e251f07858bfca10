"""Exercises of the chapter on the Transformer."""
