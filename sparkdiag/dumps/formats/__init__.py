"""One module a format: ``claims(lines)`` says how sure (0 to 1) the lines are of it, ``read(lines)`` reads them. Pure.

The lines come without colours, fences and log prefixes. Neither function ever raises; frames are innermost first.
"""
