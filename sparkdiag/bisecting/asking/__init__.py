"""From what was typed to a question and its plan."""
