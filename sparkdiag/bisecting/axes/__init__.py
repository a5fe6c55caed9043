"""What is searched over: commits of a clone or the lab, published releases, DCP sizes, prompt lengths."""
