"""Run by an environment's interpreter: sparkdiag's Triton kernel on random calls against float64, poisoned memory."""
# ruff: noqa: E402 - the interpreter must be chosen before Triton is imported

import json
import math
import os
import random
import sys

os.environ["TRITON_INTERPRET"] = "1"
sys.path.insert(0, os.path.dirname(sys.argv[1]))  # noqa: PTH120 - as main.py

from main import find_own_folder

find_own_folder()
from sparkdiag.kernels.inside import mqa_triton
from sparkdiag.kernels.inside.inputs import WINDOWS, Case, make_inputs
from sparkdiag.kernels.inside.numerics import judge
from sparkdiag.kernels.inside.poison import poisoned
from sparkdiag.kernels.inside.reference import make_reference

seed = int(sys.argv[2])
chosen = random.Random(seed)
for number in range(12):
    case = Case(
        rows=chosen.randint(1, 40),
        keys=chosen.randint(1, 300),
        heads=chosen.choice((1, 2, 5, 8, 64)),
        window=WINDOWS[number % len(WINDOWS)],
        head_dim=chosen.choice((32, 64, 128)),
    )
    inputs = make_inputs(case, seed=seed + number, device="cpu")
    with poisoned(math.nan, modules=(mqa_triton,)):
        got = mqa_triton.fp8_mqa_logits(inputs.q, inputs.kv, inputs.weights, inputs.starts, inputs.ends)
    judged = judge(got, reference=make_reference(inputs), inputs=inputs, clean=True, tolerance=1e-5)
    print(json.dumps({"case": case.label, "problems": judged.problems, "difference": judged.difference}))
