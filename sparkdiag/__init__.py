"""sparkdiag: reproduce a vLLM prefill stall and report what it was, with evidence."""

__version__ = "0.1.0"
