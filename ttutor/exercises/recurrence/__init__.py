"""Exercises of the chapter on recurrence."""
