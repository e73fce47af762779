"""Starts gpulab, the lab for learning CUDA, which is a program in this package: ``gpulab``, or ``python -m gpuconv.lab``."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Replaces this process by gpulab with the same arguments."""
    program = os.path.join(os.path.dirname(__file__), "gpulab")
    if not os.access(program, os.X_OK):
        sys.exit("gpulab: this build of the package does not contain it; it is built on Linux")
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
