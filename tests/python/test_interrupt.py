"""Ctrl-C ends long calls with KeyboardInterrupt, and what was made before stays usable."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

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
    "prepare": """
        interrupted(lambda: gpuconv.Convolver(x))
    """,
    "batch": """
        gpuconv.write("x.wav", x, 48000)
        gpuconv.write("ir.wav", h, 48000)
        interrupted(lambda: gpuconv.batch(inputs="x.wav", irs="ir.wav", out="wet"))
        assert not os.path.exists("wet/x.wav")
    """,
    "calibrate": """
        interrupted(gpuconv.calibrate)
    """,
}
PIPES = {
    "read": "gpuconv.read('pipe')",
    "convolve_file": "gpuconv.convolve_file('pipe', 'ir.wav', 'out.wav')",
    "write": "gpuconv.write('unread', h, 48000, format='wav')",
}


# A calibration that ends before the signal writes costs, which other tests must not find.
@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_ends_a_long_call(tmp_path, name):
    text = textwrap.dedent(PREPARE) + textwrap.dedent(CALLS[name])
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=300, cwd=tmp_path,
                          env=dict(os.environ, XDG_CACHE_HOME=str(tmp_path)))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", PIPES)
def test_ctrl_c_ends_a_call_that_waits_for_a_pipe(tmp_path, name):
    text = textwrap.dedent(PREPARE) + textwrap.dedent(f"""
        gpuconv.write("ir.wav", h[0, :100], 48000)
        os.mkfifo("pipe")
        os.mkfifo("unread")
        held = os.open("pipe", os.O_RDWR)
        interrupted(lambda: {PIPES[name]})
        assert not os.path.exists("out.wav")
    """)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_callback_is_called_on_the_thread_that_called(tmp_path):
    gpuconv.write(tmp_path / "x.wav", np.ones(1 << 20, np.float32), 48000)
    seen = set()
    gpuconv.convolve_file(tmp_path / "x.wav", tmp_path / "x.wav", tmp_path / "y.wav", progress=lambda *_: seen.add(threading.get_ident()))
    gpuconv.batch(inputs=tmp_path / "x.wav", irs=tmp_path / "x.wav", out=tmp_path / "wet", progress=lambda *_: seen.add(threading.get_ident()))
    assert seen == {threading.get_ident()}
    with pytest.warns(UserWarning, match="clipped") as record:
        gpuconv.convolve_file(tmp_path / "x.wav", tmp_path / "x.wav", tmp_path / "y.wav", encoding="s16")
    assert record[0].filename == __file__


def test_a_handler_that_does_not_raise_lets_the_call_finish():
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
    try:
        os.kill(os.getpid(), signal.SIGUSR1)
        y = gpuconv.convolve(np.ones((2, 3_000_000), np.float32), np.ones(100, np.float32))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen and abs(y[0, 1000] - 100) < 1e-3


RELEASING = {
    "all_finite": lambda x: gpuconv._core.all_finite(x),
    "convolve": lambda x: gpuconv.convolve(x[0, :2000], x[0]),
    "prepare": lambda x: gpuconv.Convolver(x),
    "response": lambda x: gpuconv.ImpulseResponse(x, 48000),
    "onset": lambda x: RESPONSES[0].onset(-0.001),
    "peak": lambda x: RESPONSES[0].peak(),
}
RESPONSES = []


@pytest.mark.parametrize("name", RELEASING)
def test_other_threads_run_during_a_long_call(name, rng):
    x = rng.standard_normal((2, 4_000_000), dtype=np.float32)
    RESPONSES[:] = [gpuconv.ImpulseResponse(x, 48000)]
    count, end, before = [0], threading.Event(), sys.getswitchinterval()

    def step():
        while not end.is_set():
            count[0] += 1
            time.sleep(0)

    thread = threading.Thread(target=step)
    sys.setswitchinterval(1000)  # a thread runs only while another has released the GIL
    try:
        thread.start()
        for _ in range(100):
            seen = count[0]
            RELEASING[name](x)
            if count[0] > seen:
                return
        pytest.fail("no other thread ran during 100 calls")
    finally:
        end.set()
        sys.setswitchinterval(before)
        thread.join()
