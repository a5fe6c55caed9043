"""Kernel dispatch of the fake."""
