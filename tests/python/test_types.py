"""The package is typed: the marker, the stub of the extension, and mypy --strict where it is installed."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import gpuconv
import pytest
from conftest import SOURCE


def test_the_package_says_that_it_is_typed():
    folder = Path(gpuconv.__file__).parent
    assert (folder / "py.typed").exists()
    assert "def convolve" in (folder / "_core.pyi").read_text()


def test_mypy(tmp_path):
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", str(SOURCE / "python/pyproject.toml"), "--cache-dir", str(tmp_path),
         "-p", "gpuconv"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
