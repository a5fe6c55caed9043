"""Search over revisions, releases, DCP sizes or prompt lengths, with one reproduction per trial."""
