"""Exercises of the chapter on how a language model becomes an assistant: one module each."""
