"""The end of Python with threads inside calls: the process ends in the way that was asked for, without a crash or partial files."""

import os
import random
import signal
import subprocess
import sys
import textwrap

import pytest
from conftest import SOURCE

PREPARE = """
    import concurrent.futures, multiprocessing.pool, os, signal, sys, threading, time, warnings
    import numpy as np
    import gpuconv

    SOURCE, FOLDER = sys.argv[1:3]
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    h = rng.standard_normal((2, 1 << 16), dtype=np.float32)
    x = rng.standard_normal((2, 1 << 20), dtype=np.float32)
    hall, song = SOURCE + "/impulses/cathedral.flac", FOLDER + "/song.wav"
    gpuconv.write(song, x, 48000)
    os.mkfifo(FOLDER + "/pipe")
    pipe = os.open(FOLDER + "/pipe", os.O_RDWR)  # whose reader waits for ever
    response = gpuconv.ImpulseResponse(h, 48000)
    number = iter(range(10 ** 9))

    def output():
        return FOLDER + "/out%d.wav" % next(number)

    def batch():
        folder = FOLDER + "/wet%d" % next(number)
        gpuconv.batch(inputs=song, irs=hall, out=folder, progress=lambda done, total: time.sleep(0.001))

    def stream():
        stream = gpuconv.StreamingConvolver(h, block=64)
        stream(x[:, :100000])
        stream.swap(h[:, ::-1])
        stream(x[:, :100000])

    calls = {
        "array": lambda: gpuconv.convolve(x, h),
        "short": lambda: gpuconv.convolve(x[:, :3000], h[:, :500]),
        "finite": lambda: gpuconv.convolve(x[0, :10], x),
        "prepare": lambda: gpuconv.Convolver(x),
        "convolver": lambda: gpuconv.Convolver(response)(x),
        "stream": stream,
        "edit": lambda: response.resample(44100),
        "figures": lambda: gpuconv.acoustics(hall),
        "read": lambda: gpuconv.read(song),
        "pipe": lambda: gpuconv.read(FOLDER + "/pipe"),
        "write": lambda: gpuconv.write(output(), x, 48000),
        "file": lambda: gpuconv.convolve_file(song, hall, output(), progress=lambda done, total: None),
        "callback": lambda: gpuconv.convolve_file(song, hall, output(), progress=lambda *_: forever(lambda: time.sleep(0.001))),
        "batch": batch,
    }

    def forever(call):
        while True:
            call()
"""
THREADS = {
    "daemon": """
        for call in chosen:
            threading.Thread(target=forever, args=(call,), daemon=True).start()
    """,
    "pool": """
        pool = multiprocessing.pool.ThreadPool(len(chosen))
        pool.map_async(forever, chosen)
    """,
    "executor": """
        executor = concurrent.futures.ThreadPoolExecutor(len(chosen))
        tasks = [executor.submit(call) for call in chosen]
    """,
}
ENDS = {
    "return": ("", 0),
    "sys.exit": ("sys.exit(3)", 3),
    "os._exit": ("os._exit(4)", 4),
    "exception": ("raise RuntimeError('the end')", 1),
    "SIGINT": ("os.kill(os.getpid(), signal.SIGINT); time.sleep(60)", -signal.SIGINT),
    "SIGTERM": ("os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)", -signal.SIGTERM),
    "call at the end": ("atexit.register(lambda: os._exit(5 if gpuconv.convolve(x, h).any() else 6))", 5),
}
CALLS = ["array", "short", "finite", "prepare", "convolver", "stream", "edit", "figures", "read", "pipe", "write", "file", "callback", "batch"]
ABRUPT = ("os._exit", "SIGTERM")


def end_with(folder, threads, chosen, end, pause):
    """Runs Python with threads in the calls until `end`, and checks how it ended."""
    text, code = ENDS[end]
    script = "import atexit\n" + (text + "\n" if "atexit" in text else "") + textwrap.dedent(PREPARE)
    script += f"chosen = [calls[name] for name in {chosen}]\n" + textwrap.dedent(THREADS[threads])
    script += f"time.sleep({pause})\n" + ("" if "atexit" in text else text)
    done = subprocess.run([sys.executable, "-c", script, str(SOURCE), str(folder)], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, f"{threads} {chosen} {end} {pause}: {done.returncode}\n{done.stderr}"
    assert "Exception in thread" not in done.stderr and "terminate" not in done.stderr, done.stderr
    if end not in ABRUPT:
        left = [path.name for path in folder.rglob("*") if path.is_file()]
        assert all(name.endswith((".wav", ".csv", ".jsonl")) and not name.startswith(".") for name in left), left


@pytest.mark.parametrize("name", CALLS)
def test_a_thread_inside_a_call_does_not_crash_the_end_of_python(tmp_path, name):
    end_with(tmp_path, "daemon", [name, name], "return", 1.0 if name == "callback" else 0.2)  # until it is called


@pytest.mark.parametrize("end", ENDS)
def test_every_way_to_end_python_with_threads_inside_calls(tmp_path, end):
    end_with(tmp_path, "daemon", ["array", "file", "batch", "stream"], end, 0.2)


@pytest.mark.parametrize("seed", range(int(os.environ.get("GPUCONV_EXIT_ROUNDS", "8"))))
def test_random_threads_calls_and_ends(tmp_path, seed):
    draw = random.Random(seed)
    threads = draw.choice(list(THREADS))
    names = [name for name in CALLS if threads != "executor" or name not in ("pipe", "callback")]  # which it waits for
    end_with(tmp_path, threads, draw.choices(names, k=draw.randint(1, 6)), draw.choice(list(ENDS)), draw.uniform(0, 0.5))
