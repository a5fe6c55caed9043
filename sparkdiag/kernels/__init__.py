"""The kernels on both sides of the argument: the fallback's chunk plan, numerics, timings."""
