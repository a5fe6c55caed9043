"""``python -m sparkdiag``: the same as the console script."""

from sparkdiag.cli.app import main

main()
