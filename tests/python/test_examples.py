"""Runs every example, and the Python blocks of the package's README; the distributed ones with two workers."""

import importlib.util
import os
import re
import signal
import subprocess
import sys

import pytest
from conftest import SOURCE

EXAMPLES = SOURCE / "python" / "examples"
NEEDS = {"03_training": ("torch",), "torchrun_reverb": ("torch",), "ray_reverb": ("ray", "pandas", "pyarrow")}


def run(*arguments, **environment):
    """Runs Python in a session of its own, so that a timeout ends the processes that it has started, too."""
    process = subprocess.Popen(
        [sys.executable, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, **environment}, start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        pytest.fail(f"{arguments}: no end after 300 s\n{out}{err}")
    assert process.returncode == 0, out + err
    return out


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
        assert name in text or name in ("Audio", "BatchResult", "Acoustics", "Preparation"), f"the README lacks {name}"


def test_every_public_name_has_a_docstring():
    import gpuconv

    for name in gpuconv.__all__:
        value = getattr(gpuconv, name)
        assert name == "built_with_cuda" or (value.__doc__ and "\n" in value.__doc__ + "\n"), name
