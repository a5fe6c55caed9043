"""The abstract interpreter: from the entry function through every way of its dispatch."""
