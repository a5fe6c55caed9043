"""Which kernel a revision reaches for a configuration, read off its source: nothing is imported, nothing is run."""
