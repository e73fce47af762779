"""Runs every example, and the Python blocks of the package's README; the distributed ones with two workers."""

import importlib.util
import os
import re
import subprocess
import sys
import types

import numpy as np
import pytest
from conftest import SOURCE

EXAMPLES = SOURCE / "python" / "examples"
NEEDS = {"03_training": ("torch",), "torchrun_reverb": ("torch",), "ray_reverb": ("ray", "pandas", "pyarrow")}


def run(*arguments, **environment):
    done = subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=300, env={**os.environ, **environment}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def need(name):
    for library in NEEDS.get(name, ()):
        if importlib.util.find_spec(library) is None:
            pytest.skip(f"{library} is not installed")


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("[0-9]*.py")))
def test_example(name):
    need(name)
    assert run(EXAMPLES / f"{name}.py")


def test_torchrun_with_two_ranks():
    need("torchrun_reverb")
    text = run("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", EXAMPLES / "torchrun_reverb.py",
               OMP_NUM_THREADS="1")
    assert "2 ranks convolved 16 signals" in text


def test_ray_data_with_two_actors():
    need("ray_reverb")
    assert "2 actors convolved 32 signals" in run(EXAMPLES / "ray_reverb.py", RAY_DATA_DISABLE_PROGRESS_BARS="1")


def test_the_blocks_of_the_readme_run(tmp_path):
    text = (SOURCE / "python" / "README.md").read_text()
    blocks = re.findall(r"<!-- test: (\w+) -->\n```python\n(.*?)```", text, re.S)
    assert len(blocks) >= 3
    for library, block in blocks:
        if library != "numpy" and importlib.util.find_spec(library) is None:
            continue
        script = tmp_path / "block.py"
        script.write_text(f"import os\nos.chdir({str(SOURCE)!r})\n" + block.replace('"wet', f'"{tmp_path}/wet'))
        run(script)


def test_the_readme_names_what_exists():
    import gpuconv

    text = (SOURCE / "python" / "README.md").read_text()
    for name in set(re.findall(r"gpuconv\.([A-Za-z_]+)", text)) - {"torch", "h", "flac", "wav"}:
        assert hasattr(gpuconv, name), name
    for name in gpuconv.__all__:
        assert name in text or name in ("Audio", "BatchResult", "BatchSettings", "Acoustics", "Preparation"), f"the README lacks {name}"


def rows_instead_of():
    text = (SOURCE / "python" / "README.md").read_text()
    table = text[text.index("## Instead of") :].split("\n\n")[1].splitlines()[2:]
    return [tuple(cell.strip().strip("`") for cell in line.strip("|").split(" | ")) for line in table]


def test_the_table_has_the_libraries_that_are_replaced():
    assert [row[0] for row in rows_instead_of()] == [
        "SciPy", "SciPy", "CuPy", "torchaudio", "torch-audiomentations", "pyroomacoustics"]


@pytest.mark.parametrize("name, before, after", rows_instead_of())
def test_a_row_of_the_table(name, before, after):
    """The line after gives what the line before gave."""
    import gpuconv

    scipy = types.SimpleNamespace(signal=pytest.importorskip("scipy.signal", reason="SciPy is not installed"))
    rng = np.random.default_rng(0)
    x, h = rng.standard_normal((3, 3000)).astype("f4"), rng.standard_normal(400).astype("f4")
    names = {"gpuconv": gpuconv, "np": np, "scipy": scipy, "fftconvolve": scipy.signal.fftconvolve, "x": x, "h": h}
    if name == "CuPy":
        pytest.skip("CuPy runs on a GPU: the same call as that of SciPy")
    if name == "pyroomacoustics":  # room.rir[microphone][source] are lists of taps
        names.update(x=x[0], room=types.SimpleNamespace(rir=[[h.astype(float), h[::-1].astype(float)]]))
    if name in ("torchaudio", "torch-audiomentations"):
        torch = pytest.importorskip("torch", reason="PyTorch is not installed")
        import gpuconv.torch  # noqa: F401

        if name == "torchaudio":
            names["torchaudio"] = types.SimpleNamespace(functional=pytest.importorskip("torchaudio.functional"))
            names.update(x=torch.from_numpy(x), h=torch.from_numpy(h)[None])
        else:
            names["paths"] = [SOURCE / "impulses" / f"{which}.flac" for which in ("hall", "studio")]
            y = eval(after, names)(torch.randn(4, 2, 6000))
            assert y.shape == (4, 2, 6000) and torch.isfinite(y).all()
            return
    want, got = (np.asarray(eval(line, names)) for line in (before, after))
    assert got.shape == want.shape and got.dtype == np.float32
    assert np.abs(got - want).max() < 1e-5 * np.abs(want).max()


def test_every_public_name_has_a_docstring():
    import gpuconv

    for name in gpuconv.__all__:
        value = getattr(gpuconv, name)
        assert name == "built_with_cuda" or (value.__doc__ and "\n" in value.__doc__ + "\n"), name
