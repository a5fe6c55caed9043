"""Stands in for vLLM where only its shape matters."""

__version__ = "0.0.1+fake"
