"""A revision's modules, read and parsed as they are asked for."""
