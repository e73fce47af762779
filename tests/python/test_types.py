"""The package is typed: the marker, the stub of the extension, and mypy --strict where it is installed."""

import importlib.util
import re
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


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A cache that the runs of mypy share."""
    return tmp_path_factory.mktemp("mypy")


def mypy(folder, cache, *arguments):
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", str(cache), *map(str, arguments)], capture_output=True, text=True,
        cwd=folder, timeout=600)
    return done.returncode, done.stdout + done.stderr


def test_mypy(tmp_path, cache):
    code, text = mypy(tmp_path, cache, "--config-file", SOURCE / "python/pyproject.toml", "-p", "gpuconv")
    assert code == 0, text


USE = """
import gpuconv
import numpy as np
x, rate = gpuconv.read("x.wav")
reveal_type(gpuconv.convolve(x, x, "same"))
reveal_type(gpuconv.convolve([1, 2], [3]))
reveal_type(gpuconv.Convolver(x)(x))
reveal_type(gpuconv.StreamingConvolver(x)(x))
reveal_type(gpuconv.acoustics("x.wav")[0].t30)
gpuconv.convolve(x, x, "bogus")
gpuconv.prepare_ir("x.wav", inputs=1, rate=rate, trimm=-60)
gpuconv.batch(out="x", inputs="a", irs="b", wet=(-3, 0), wett=1)
"""


def test_users_get_types_and_errors_of_mypy(tmp_path, cache):
    blocks = re.findall(r"<!-- test: numpy -->\n```python\n(.*?)```", (SOURCE / "python" / "README.md").read_text(), re.S)
    files = [tmp_path / f"block{number}.py" for number in range(len(blocks))]
    for file, block in zip(files, blocks):
        file.write_text(block)
    code, text = mypy(tmp_path, cache, "--strict", *files, SOURCE / "python/examples/01_arrays.py")
    assert code == 0, text
    (tmp_path / "use.py").write_text(USE)
    code, text = mypy(tmp_path, cache, "--strict", "use.py")
    assert code == 1
    assert text.count("ndarray") >= 4 and 'type is "float"' in text, text
    for name in ("overload", "trimm", "wett"):
        assert name in text
    assert "Found 3 errors" in text, text
