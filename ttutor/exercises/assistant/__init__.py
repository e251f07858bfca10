"""Exercises of the chapter on looking inside a trained model: one module each."""
