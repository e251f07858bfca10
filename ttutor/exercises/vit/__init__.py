"""Exercises of the chapter on images."""
