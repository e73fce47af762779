"""scripts/compare-speed: its commands, and whole programs beside gpuconv with their outputs checked."""

import os
import subprocess
import sys

import pytest

from conftest import SOURCE


def compare(*words):
    return subprocess.run([sys.executable, SOURCE / "scripts" / "compare-speed", *map(str, words)], capture_output=True,
                          text=True, timeout=300, check=False)


def test_the_help_names_every_command():
    text = compare("--help").stdout
    assert all(f"  {name} " in text for name in ("programs", "file", "batch", "corpus", "peers", "matrix", "choice"))


@pytest.mark.parametrize("channels", [1, 2])
def test_programs_are_compared_and_no_file_remains(channels, command, tmp_path):
    made = compare("programs", "--gpuconv", command, "--work", tmp_path, "--frames", 30000, "--taps", 700,
                   "--channels", channels, "--runs", 1)
    assert made.returncode == 0, made.stderr
    assert "30000 x 700: gpuconv" in made.stdout and not os.listdir(tmp_path)


def test_a_wrong_output_of_gpuconv_fails(tmp_path):
    wrong = tmp_path / "gpuconv"
    wrong.write_text("#!/bin/sh\nexec cp in.wav out.wav\n")
    wrong.chmod(0o755)
    made = compare("programs", "--gpuconv", wrong, "--frames", 3000, "--taps", 70, "--runs", 1)
    assert made.returncode == 1 and "gpuconv's output is wrong" in made.stderr
