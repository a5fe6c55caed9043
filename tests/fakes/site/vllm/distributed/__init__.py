"""Parallel state of the fake: set by the worker before it answers."""
