"""Answers that tests alone need: right ones in other styles, and mistakes that stand in no list."""
