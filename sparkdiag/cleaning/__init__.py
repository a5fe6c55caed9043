"""Everything that sparkdiag puts on a machine: finding it, and taking it away again."""
