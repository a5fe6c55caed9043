"""Prompts as the driver sends them, small."""

import random

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def _haystack(generator, lines):
    return [
        " ".join("".join(generator.choices(LETTERS, k=generator.randint(3, 8))) for _ in range(6)) + ".\n"
        for _ in range(lines)
    ]


def needle(seed, *, lines=24, depth=0.35, decoys=2):
    """(prompt, expected): a needle among lines and other needles, the question at the end."""
    generator = random.Random(seed)
    text = _haystack(generator, lines)

    def pair():
        return f"K{generator.randrange(10**8):08d}", str(generator.randrange(10**9, 10**10))

    key, value = pair()
    text.insert(int(depth * lines), f"The value of key {key} is {value}.\n")
    for _ in range(decoys):
        text.insert(generator.randrange(len(text)), "The value of key {} is {}.\n".format(*pair()))
    return ("".join(text) + f"The value of key {key} is").encode(), f" {value}.".encode()


def reasoning(seed, *, steps=8, lines=10):
    generator = random.Random(seed)
    text = _haystack(generator, lines)
    line = "; ".join(f"step {n} gives {generator.randint(100, 99999)}" for n in range(1, steps + 1))
    answer = f" {line}; answer {generator.randint(1000, 9999)}."
    name = f"D{generator.randrange(10**6):06d}"
    text.insert(lines // 2, f"Derivation {name}:{answer}\n")
    return ("".join(text) + f"Derivation {name}:").encode(), answer.encode()
