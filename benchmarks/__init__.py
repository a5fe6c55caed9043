"""What sparkdiag costs and how fast it answers, as paired ratios: ``python -m benchmarks NAME`` (see README.md)."""
