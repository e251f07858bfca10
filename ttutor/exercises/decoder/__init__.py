"""Exercises of the chapter on the decoder."""
