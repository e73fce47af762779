"""Runs examples/lab.ipynb with the gpulab of this build, without a GPU: its lines of the shell, its files and its Python."""

import contextlib
import io
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import SOURCE

NOTEBOOK = SOURCE / "examples" / "lab.ipynb"
PROGRAM = Path(os.environ.get("GPUCONV", "gpuconv")).parent / "gpulab"


def shell(command):
    done = subprocess.run(["sh", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    print(done.stdout)


def run_cell(source, names):
    """Runs a cell as IPython does, as far as the notebook uses it. What pip would install is there already."""
    first, _, rest = source.partition("\n")
    if first.startswith("%%writefile "):
        Path(first.split()[1]).write_text(rest)
        return
    lines = []
    for line in source.splitlines():
        if line.lstrip().startswith("%pip "):
            line = line.replace(line.lstrip(), "pass")
        elif line.startswith("!"):
            line = f"shell({line[1:]!r})"
        lines.append(line)
    exec(compile("\n".join(lines), "cell", "exec"), names)


@pytest.mark.skipif(not PROGRAM.exists(), reason="this build has no gpulab")
@pytest.mark.skipif(not shutil.which("addr2line") or not (shutil.which("g++") or shutil.which("clang++")), reason="the emulator needs a C++ compiler")
def test_notebook_runs_without_a_gpu(tmp_path, monkeypatch):
    notebook = json.loads(NOTEBOOK.read_text())
    assert notebook["nbformat"] == 4 and all(not cell.get("outputs") for cell in notebook["cells"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{PROGRAM.parent.resolve()}:{os.environ['PATH']}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    names, said = {"shell": shell}, io.StringIO()
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for cell in cells:
        with contextlib.redirect_stdout(said):
            run_cell(cell, names)
    Path("scan.cu").write_text("mine")  # the last cell does not replace what stands in the file
    run_cell(cells[-1], names)
    assert Path("scan.cu").read_text() == "mine"
    said = said.getvalue()
    for text in ("hello.cu is right at every size", "This is a race", "sum.cu is right at every size", "requests of 18.0 sectors",
                 "Limit:", "CPU sequential", "scan-one-pass", "Hints:"):
        assert text in said, said


def test_notebook_installs_the_compiler_of_the_build():
    wanted = [line for line in (SOURCE / "cmake" / "cuda-compiler.txt").read_text().splitlines() if line and not line.startswith("#")]
    assert " ".join(wanted) in NOTEBOOK.read_text()
