"""One trial for real: run, wait, prepare the next, and what came of it."""
