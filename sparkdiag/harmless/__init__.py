"""What sparkdiag read, made harmless before it is kept or shown: secrets out, unseen characters visible. Pure.

The lowest layer: it imports the standard library alone, and little of that, because every command loads it.
"""
