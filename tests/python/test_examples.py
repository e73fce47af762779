"""Runs every example, and the Python blocks of the package's README; the distributed ones with two workers."""

import importlib.util
import os
import re
import signal
import subprocess
import sys

import gpuconv
import numpy as np
import pytest
from conftest import SOURCE, assert_close

EXAMPLES = SOURCE / "python" / "examples"
NEEDS = {"03_training": ("torch",), "04_filtered_noise": ("torch",), "torchrun_reverb": ("torch",), "ray_reverb": ("ray", "pandas", "pyarrow")}


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


def instead_of():
    """Returns the rows of the table: library, the line before, the line after."""
    text = (SOURCE / "python" / "README.md").read_text()
    table = text[text.index("## Instead of"):]
    return re.findall(r"^\| (\S+) \| `(.+?)` \| `(.+?)` \|$", table[: table.index("\n## ")], re.M)


def loaded(*names):
    """Imports libraries, or skips the test: also where one of them does not fit another."""
    try:
        return [importlib.import_module(name) for name in names]
    except Exception as error:
        pytest.skip(f"{names[-1]}: {str(error)[:120]}")


def last_value(text, names):
    *statements, expression = text.split("; ")
    for statement in statements:
        exec(statement, names)
    return eval(expression, names)


def test_the_table_has_its_rows():
    assert [row[0] for row in instead_of()] == ["SciPy", "SciPy", "CuPy", "torchaudio", "torch-audiomentations", "pyroomacoustics"]


@pytest.mark.parametrize("row", range(6))
def test_the_line_after_does_what_the_line_before_did(row, rng, tmp_path):
    library, before, after = instead_of()[row]
    x, h = rng.standard_normal((2, 8000)).astype(np.float32), rng.standard_normal(500).astype(np.float32)
    names = {"gpuconv": gpuconv, "np": np, "x": x, "h": h}
    if library == "SciPy":
        names["scipy"] = loaded("scipy.signal", "scipy")[1]
    elif library == "CuPy":
        names["cupyx"], cupy = loaded("cupyx.scipy.signal", "cupyx", "cupy")[1:]
        names["x"], names["h"] = cupy.asarray(x), cupy.asarray(h)
    elif library == "torchaudio":
        torch, names["torchaudio"] = loaded("torch", "torchaudio")
        names["x"], names["h"] = torch.from_numpy(x), torch.from_numpy(h)
    elif library == "torch-audiomentations":
        torch, audio, _, module = loaded("torch", "torchaudio", "gpuconv.torch", "torch_audiomentations")
        if not hasattr(audio, "info"):
            pytest.skip(f"torch-audiomentations {module.__version__} needs an older torchaudio than {audio.__version__}")
        names["ApplyImpulseResponse"], names["paths"] = module.ApplyImpulseResponse, [str(tmp_path / "room.wav")]
        gpuconv.write(names["paths"][0], np.stack([h, np.roll(h, 40)]), 48000)  # a stereo room for mono signals
        batch = torch.from_numpy(x)[:, None]
        old = last_value(before.replace("p=0.5", 'p=1.0, output_type="dict"'), names)(batch, 48000).samples
        new = last_value(after.replace("p=0.5", "p=1.0"), names)(batch)
        assert_close(new, old.numpy(), bound=-100)
        # Another rate of the signals: the same but for the level, which torch-audiomentations does not keep.
        gpuconv.write(names["paths"][0], np.convolve(h, np.hanning(31))[None].astype(np.float32), 48000)  # without a top octave
        old = last_value(before.replace("p=0.5", 'p=1.0, output_type="dict"').replace("48000", "16000"), names)(batch, 16000).samples
        new = last_value(after.replace("p=0.5", "p=1.0").replace("48000", "16000"), names)(batch)
        assert_close(new, 3 * old.numpy(), bound=-30)
        return
    else:
        (rooms,) = loaded("pyroomacoustics")
        room = names["room"] = rooms.ShoeBox([6, 5, 3], fs=16000, materials=rooms.Material(0.3), max_order=4)
        room.add_source([1, 1, 1.5], signal=x[0])
        room.add_source([4, 3, 1.2], signal=x[1])
        room.add_microphone_array(np.array([[2, 2, 1.5], [5, 4, 1.0], [3, 1, 2]]).T)
    old, new = last_value(before, names), last_value(after, names)
    if library == "CuPy":
        old, new = old.get(), new.get()
    old, new = np.asarray(old, np.float64), np.asarray(new)
    assert np.abs(old).max() > 0.1 and abs(old.shape[-1] - new.shape[-1]) <= 1  # pyroomacoustics makes lengths even
    frames = min(old.shape[-1], new.shape[-1])
    assert_close(new[..., :frames], old[..., :frames], bound=-100)


def test_the_readme_names_what_exists():
    text = (SOURCE / "python" / "README.md").read_text()
    for name in set(re.findall(r"gpuconv\.([A-Za-z_]+)", text)) - {"torch", "h", "flac", "wav"}:
        assert hasattr(gpuconv, name), name
    for name in gpuconv.__all__:
        assert name in text or name in ("Audio", "BatchResult", "Acoustics", "Preparation", "Plan", "BatchOptions"), f"the README lacks {name}"


def test_every_public_name_has_a_docstring():
    for name in gpuconv.__all__:
        value = getattr(gpuconv, name)
        assert name == "built_with_cuda" or (value.__doc__ and "\n" in value.__doc__ + "\n"), name
