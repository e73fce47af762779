"""Ctrl-C ends long calls with KeyboardInterrupt, and what was made before stays usable."""

import os
import signal
import subprocess
import sys
import textwrap

import gpuconv
import numpy as np
import pytest

PREPARE = """
    import os, signal, sys, threading, time
    import numpy as np
    import gpuconv

    rng = np.random.default_rng(0)
    h = rng.standard_normal((16, 1 << 18), dtype=np.float32)
    x = rng.standard_normal((16, 1 << 21), dtype=np.float32)

    def interrupted(call):
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        begin = time.monotonic()
        try:
            while time.monotonic() < begin + 60:
                call()
        except KeyboardInterrupt:
            return
        sys.exit("the call was not interrupted")
"""
CALLS = {
    "convolve": """
        want = gpuconv.convolve(x[:2, :50000], h[:2, :3000])
        interrupted(lambda: gpuconv.convolve(x, h))
        assert np.array_equal(gpuconv.convolve(x[:2, :50000], h[:2, :3000]), want)
    """,
    "convolver": """
        convolver = gpuconv.Convolver(gpuconv.ImpulseResponse(h, 48000))
        interrupted(lambda: convolver(x))
        assert np.isfinite(convolver(x[:, :1000])).all()
        interrupted(lambda: convolver(x))
    """,
    "stream": """
        stream = gpuconv.StreamingConvolver(h, block=64)
        interrupted(lambda: stream(x))
        stream.reset()
        assert np.isfinite(stream(x[:, :1000])).all()
    """,
    "edit": """
        ir = gpuconv.ImpulseResponse(x, 48000)
        interrupted(lambda: ir.resample(44100))
        assert ir.frames == 1 << 21
    """,
}


@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_ends_a_long_call(name):
    text = textwrap.dedent(PREPARE) + textwrap.dedent(CALLS[name])
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_handler_that_does_not_raise_lets_the_call_finish():
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
    try:
        os.kill(os.getpid(), signal.SIGUSR1)
        y = gpuconv.convolve(np.ones((2, 3_000_000), np.float32), np.ones(100, np.float32))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen and abs(y[0, 1000] - 100) < 1e-3
