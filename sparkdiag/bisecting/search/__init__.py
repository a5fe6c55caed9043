"""Which points are left and which to try next. Pure."""
