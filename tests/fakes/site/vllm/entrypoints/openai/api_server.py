"""``python -m vllm.entrypoints.openai.api_server``: how sparkdiag starts the fake through its real command line."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[4]))
    import fake_vllm

    fake_vllm.main()
