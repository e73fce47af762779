"""Python programs set the locale of the process; numbers in manifests and results keep their decimal point."""

import os
import shutil
import subprocess
import sys

import gpuconv
import numpy as np
import pytest

SCRIPT = """
import locale, sys
import gpuconv
locale.setlocale(locale.LC_ALL, sys.argv[1])
for again in range(2):
    result = gpuconv.batch(inputs="*.wav", irs="room.wav", out=sys.argv[2], gain=(-6, -1), seed=3) if not again else gpuconv.batch(
        sys.argv[2] + "/manifest.csv", out=sys.argv[2], resume=True)
    print(result.done, result.skipped, result.failed)
"""


def test_a_batch_in_a_locale_with_decimal_commas_is_resumed(tmp_path):
    locales = tmp_path / "locales"
    locales.mkdir()
    if not shutil.which("localedef") or subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", locales / "de_DE.UTF-8"]).returncode:
        pytest.skip("localedef cannot build de_DE (Debian: locales)")
    rng = np.random.default_rng(4)
    for name in ("B", "a", "room"):
        gpuconv.write(tmp_path / f"{name}.wav", 0.1 * rng.standard_normal(3000).astype(np.float32), 16000)
    for name in ("C", "de_DE.UTF-8"):
        run = subprocess.run([sys.executable, "-c", SCRIPT, name, name], cwd=tmp_path, env={**os.environ, "LOCPATH": str(locales)},
                             capture_output=True, text=True)
        assert run.stdout.split("\n")[:2] == ["3 0 0", "0 3 0"], run.stdout + run.stderr
    assert (tmp_path / "C/manifest.csv").read_bytes() == (tmp_path / "de_DE.UTF-8/manifest.csv").read_bytes()
