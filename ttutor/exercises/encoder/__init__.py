"""Exercises of the chapter on the encoder."""
