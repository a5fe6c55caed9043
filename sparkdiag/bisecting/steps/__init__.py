"""From the journal to the next step. Pure."""
