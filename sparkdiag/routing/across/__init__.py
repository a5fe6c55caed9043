"""One question over many revisions or configurations: histories, tables, what narrows a claim."""
