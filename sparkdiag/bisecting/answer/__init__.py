"""The document of a bisection, its notes and details."""
