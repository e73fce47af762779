#!/usr/bin/env python3
"""Tries to break each promise of docs/promises.md, in random rounds.

Usage: promises.py ROUNDS [SEED]

A round draws a small job (rate, channels, sample format, lengths) and runs every check in CHECKS on it with random faults:
closed descriptors, signals at random moments, symbolic links, FIFOs, a limit on file size, a full file system, truncated
inputs, 1 to 32 threads, pipes, batches killed and resumed. The seed of a failed round is printed; the same seed draws the
same round. The environment names the command (GPUCONV) and the sanitizers it was built with (SANITIZE).
"""
import filecmp
import json
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import tempfile
import time
from array import array

GPUCONV = os.environ["GPUCONV"]
SLOW = 8 if os.environ.get("SANITIZE") else 1
LIMIT = 60 * SLOW  # seconds until a run counts as hung


class Broken(Exception):
    """A promise that did not hold."""


def check(condition, message):
    if not condition:
        raise Broken(message)


# ---- Files ---------------------------------------------------------------------------------------------------------------


def wav(path, samples, channels, rate, kind, title=None, cut=None):
    """Writes interleaved samples (-1 .. 1) as a WAV of `kind` s16, s24 or float; `cut` drops bytes from its end."""
    if kind == "float":
        code, width, data = 3, 4, array("f", samples).tobytes()
    elif kind == "s16":
        code, width = 1, 2
        data = array("h", [max(-32768, min(32767, round(x * 32768))) for x in samples]).tobytes()
    else:
        code, width = 1, 3
        data = b"".join(
            max(-8388608, min(8388607, round(x * 8388608))).to_bytes(3, "little", signed=True) for x in samples
        )
    data += b"\0" * (len(data) % 2)
    head = struct.pack("<4sIHHIIHH", b"fmt ", 16, code, channels, rate, rate * channels * width, channels * width, width * 8)
    if title:
        text = title.encode() + b"\0"
        text += b"\0" * (len(text) % 2)
        head += b"LIST" + struct.pack("<I", 12 + len(text)) + b"INFOINAM" + struct.pack("<I", len(text)) + text
    body = b"WAVE" + head + b"data" + struct.pack("<I", len(samples) * width) + data
    with open(path, "wb") as f:
        f.write((b"RIFF" + struct.pack("<I", len(body)) + body)[:cut])


def read_floats(path):
    """Returns the samples of a float WAV and its number of channels."""
    with open(path, "rb") as f:
        data = f.read()
    channels, at = 0, 12
    while at + 8 <= len(data):
        name, size = data[at : at + 4], struct.unpack("<I", data[at + 4 : at + 8])[0]
        if name == b"fmt ":
            channels = struct.unpack("<H", data[at + 10 : at + 12])[0]
        if name == b"data":
            return array("f", data[at + 8 : at + 8 + size]), channels
        at += 8 + size + size % 2
    raise Broken(f"{path} holds no samples")


def read_bytes(path):
    with open(path, "rb") as f:
        return f.read()


def state():
    """Returns every name below the current folder with its kind and, for files, its bytes."""
    found = {}
    for folder, folders, files in os.walk("."):
        for name in folders + files:
            path = os.path.join(folder, name)
            if os.path.islink(path):
                found[path] = ("link", os.readlink(path))
            elif os.path.isfile(path):
                found[path] = ("file", read_bytes(path))
            else:
                found[path] = ("other",)
    return found


# ---- Runs ----------------------------------------------------------------------------------------------------------------


def start(*arguments, **options):
    options.setdefault("stdout", subprocess.PIPE)
    options.setdefault("stderr", subprocess.PIPE)
    options.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.Popen([GPUCONV, *arguments], **options)


def finish(process, **options):
    try:
        out, err = process.communicate(timeout=LIMIT, **options)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise Broken(f"{process.args} hangs") from None
    check(process.returncode >= 0, f"{process.args} died of signal {-process.returncode}: {err}")
    check(process.returncode in (0, 1, 2, 130), f"{process.args}: exit {process.returncode}: {err}")
    return process.returncode, out, err.decode() if err is not None else ""


def run(*arguments, given=None, **options):
    if given is not None:
        options["stdin"] = subprocess.PIPE
    process = start(*arguments, **options)
    return finish(process, input=given) if given is not None else finish(process)


def until_ready(process):
    """Waits until the program has installed its handlers: before that the signal's own action ends it."""
    deadline = time.monotonic() + LIMIT
    while process.poll() is None and time.monotonic() < deadline:
        with open(f"/proc/{process.pid}/status", encoding="utf-8") as f:
            caught = next(line for line in f if line.startswith("SigCgt"))
        if int(caught.split()[1], 16) & 1 << signal.SIGTERM - 1:
            return
        time.sleep(0.005)


def done(*arguments, **options):
    status, out, err = run(*arguments, **options)
    check(status == 0, f"{arguments}: exit {status}: {err}")
    return out, err


def fails(status, name, *arguments, **options):
    """Runs a command that must end with `status`, one line that holds `name`, and the folder as it was."""
    before = state()
    got, _, err = run(*arguments, **options)
    check(got == status, f"{arguments}: exit {got} instead of {status}: {err}")
    check(err.count("\n") == 1 and name in err, f"{arguments}: not one line with '{name}': {err}")
    check(state() == before, f"{arguments}: changed the folder")


# ---- The job of a round --------------------------------------------------------------------------------------------------


class Job:
    """Files of one round: in.wav, ir.wav, and want.wav, made by a plain run on one thread."""

    def __init__(self, rng):
        self.rng = rng
        self.rate = rng.choice([8000, 16000, 44100, 48000, 96000])
        self.channels = rng.choice([1, 1, 2, 2, 3, 6])
        self.kind = rng.choice(["s16", "s24", "float"])
        self.frames = rng.choice([1, 7, 100, rng.randint(500, 3000), rng.randint(20000, 80000)])
        self.taps = rng.choice([1, 2, 31, rng.randint(32, 1500), rng.randint(5000, 20000)])
        self.level = rng.choice([0.01, 0.3, 0.99])
        self.samples = [rng.uniform(-self.level, self.level) for _ in range(self.frames * self.channels)]
        self.response = [rng.uniform(-0.5, 0.5) / (1 + i / 50) for i in range(self.taps)]
        wav("in.wav", self.samples, self.channels, self.rate, self.kind)
        wav("ir.wav", self.response, 1, self.rate, "float")
        done("in.wav", "ir.wav", "want.wav", "-q", "-t", "1")
        self.want = read_bytes("want.wav")

    def __str__(self):
        return f"{self.frames} frames x {self.taps} taps, {self.channels} channels of {self.kind} at {self.rate} Hz"

    def out_is_whole(self, path="out.wav"):
        check(read_bytes(path) == self.want, f"{path} differs from the output of a plain run")
        os.unlink(path)


# ---- Promises ------------------------------------------------------------------------------------------------------------


def exact(job):
    """Exact linear convolution, N + M - 1 frames: against sums in double precision."""
    frames, taps = min(job.frames, 400), min(job.taps, 200)
    x, h = job.samples[: frames * job.channels], job.response[:taps]
    wav("x.wav", x, job.channels, job.rate, "float")
    wav("h.wav", h, 1, job.rate, "float")
    algorithm = job.rng.choice(["auto", "direct", "overlap-save", "partitioned"])
    done("x.wav", "h.wav", "y.wav", "-q", "-a", algorithm)
    y, channels = read_floats("y.wav")
    check(channels == job.channels and len(y) == (frames + taps - 1) * channels, f"{len(y)} samples in {channels} channels")
    x, h = array("f", x), array("f", h)
    error = power = 1e-300
    for n in job.rng.sample(range(frames + taps - 1), min(60, frames + taps - 1)):
        for c in range(channels):
            want = sum(h[k] * x[(n - k) * channels + c] for k in range(max(0, n - frames + 1), min(taps, n + 1)))
            error += (y[n * channels + c] - want) ** 2
            power += want**2
    check(error <= power * 1e-11, f"{algorithm}: error {error / power:g} of the power")


def same_bytes(job):
    """The same bytes whatever the number of threads, by file and by pipe."""
    for threads in {1, 2, job.rng.randint(3, 32)}:
        done("in.wav", "ir.wav", "out.wav", "-q", "-t", str(threads))
        job.out_is_whole()
    out, _ = done("-", "ir.wav", "out.wav", "-q", given=read_bytes("in.wav"))
    check(out == b"", "standard output is not empty")
    job.out_is_whole()
    out, _ = done("in.wav", "ir.wav", "-", "-q")
    check(out == job.want, "the output on a pipe differs from the file")


def rates(job):
    """A response of another rate is resampled, and a line says so."""
    other = job.rng.choice([r for r in (8000, 22050, 44100, 48000) if r != job.rate])
    wav("other.wav", job.response, 1, other, "float")
    _, err = done("in.wav", "other.wav", "out.wav")
    check(str(other) in err and str(job.rate) in err, f"no line tells of both rates: {err}")
    os.unlink("out.wav")


def levels(job):
    """No hidden gain: a Dirac changes nothing; integer output clamps and counts the overs."""
    wav("one.wav", [1.0], 1, job.rate, "float")
    done("in.wav", "one.wav", "out.wav", "-q")
    size = min(200, len(job.samples) * {"s16": 2, "s24": 3, "float": 4}[job.kind])
    check(read_bytes("out.wav")[-size:] == read_bytes("in.wav")[-size:], "a Dirac changed the samples")
    wav("four.wav", [4.0], 1, job.rate, "float")
    _, err = done("in.wav", "four.wav", "out.wav")
    # A Dirac of 4 takes a sample over full scale where its stored value is beyond a quarter of it.
    scale = {"s16": 32768, "s24": 8388608}.get(job.kind)
    if scale:
        overs = sum(1 for x in job.samples if not -scale <= 4 * max(-scale, min(scale - 1, round(x * scale))) <= scale - 1)
        check((f" {overs} " in f" {err} ") if overs else err == "", f"{overs} overs, but: {err}")
    os.unlink("out.wav")


def titles(job):
    """Titles pass from IN to OUT."""
    title = "".join(job.rng.choice("abcdefgh ") for _ in range(20)).strip() + "x"
    wav("in2.wav", job.samples, job.channels, job.rate, job.kind, title=title)
    done("in2.wav", "ir.wav", "out.wav", "-q")
    check(title.encode() in read_bytes("out.wav"), "the title is lost")
    os.unlink("out.wav")


def descriptors(job):
    """Closed descriptors 0 to 2: no message lands in a file, and the output is whole."""
    closed = [fd for fd in (0, 1, 2) if job.rng.random() < 0.6] or [2]
    wav("other.wav", job.response, 1, job.rate + 1, "float")  # another rate: a note is printed

    def close():
        for fd in closed:
            os.close(fd)

    done("in.wav", "other.wav", "want2.wav", "-q")
    process = start("in.wav", "other.wav", "out.wav", preexec_fn=close)
    finish(process)
    check(process.returncode == 0, f"exit {process.returncode} with {closed} closed")
    check(read_bytes("out.wav") == read_bytes("want2.wav"), f"other bytes with {closed} closed")
    os.unlink("out.wav")
    os.unlink("want2.wav")


def signals(job):
    """A signal at a random moment: exit 130 or 0, OUT whole or as it was, nothing else left."""
    older = job.rng.random() < 0.5
    if older:
        with open("out.wav", "wb") as f:
            f.write(b"an older output")
    before = state()
    process = start("in.wav", "ir.wav", "out.wav", "-q")
    time.sleep(job.rng.uniform(0, 0.02 * SLOW))
    number = job.rng.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
    process.send_signal(number)
    out, err = process.communicate(timeout=LIMIT)
    # Before main() has installed its handlers the signal's own action ends the process.
    check(process.returncode in (0, 130, -number), f"signal {number}: exit {process.returncode}: {err}")
    after = state()
    whole = after.get("./out.wav") == ("file", job.want)
    if number != signal.SIGKILL:
        check(whole or after == before, f"signal {number}: the folder changed: {sorted(after)}")
        check(process.returncode != 0 or whole, "exit 0 and no output")
    elif not whole:
        check(after.get("./out.wav") == before.get("./out.wav"), "SIGKILL: half an output under its name")
    for path in set(after) - set(before) - {"./out.wav"}:
        os.unlink(path)
    if os.path.exists("out.wav"):
        os.unlink("out.wav")


def waiting(job):
    """SIGTERM while standard input is idle, or standard output blocked: exit 130."""
    process = start("-", "ir.wav", "out.wav", "-q", stdin=subprocess.PIPE)
    given = read_bytes("in.wav")[:-1]  # all of it would be enough for OUT
    process.stdin.write(given[: job.rng.choice([0, 20, 44, 400])])
    process.stdin.flush()
    time.sleep(0.1 * SLOW)
    process.send_signal(signal.SIGTERM)
    end = time.time() + LIMIT
    while process.poll() is None and time.time() < end:
        time.sleep(0.01)
    check(process.poll() is not None, "SIGTERM is ignored while standard input is idle")
    check(process.returncode in (130, -signal.SIGTERM, 1), f"idle input: exit {process.returncode}")
    process.communicate()
    check(not os.path.exists("out.wav"), "an interrupted run left an output")


def links(job):
    """OUT as a link is followed; a loop or a folder that is not there is refused."""
    os.mkdir("place")
    os.symlink("place/real.wav", "link.wav")
    if job.rng.random() < 0.5:
        with open("place/real.wav", "wb") as f:
            f.write(b"an older output")
    done("in.wav", "ir.wav", "link.wav", "-q")
    check(os.path.islink("link.wav"), "the link was replaced")
    job.out_is_whole("place/real.wav")
    os.unlink("link.wav")
    os.symlink("loop.wav", "loop.wav")
    fails(1, "loop.wav", "in.wav", "ir.wav", "loop.wav", "-q")
    os.symlink("missing/out.wav", "lost.wav")
    fails(1, "lost.wav", "in.wav", "ir.wav", "lost.wav", "-q")
    for path in ("loop.wav", "lost.wav"):
        os.unlink(path)
    os.rmdir("place")


def fifos(job):
    """OUT as a FIFO: the bytes of a pipe; a reader that leaves early is an error, not a hang."""
    os.mkfifo("pipe.wav")
    process = start("in.wav", "ir.wav", "pipe.wav", "-q")
    with open("pipe.wav", "rb") as f:
        got = f.read()
    status, _, err = finish(process)
    check(status == 0, f"FIFO: exit {status}: {err}")
    check(got == job.want, "the bytes in a FIFO differ from the file")
    if len(job.want) > 300000:  # more than a pipe and the writer's buffers hold
        process = start("in.wav", "ir.wav", "pipe.wav", "-q")
        with open("pipe.wav", "rb") as f:
            f.read(10)
        status, _, err = finish(process)
        check(status == 1 and "pipe.wav" in err, f"a reader that left: exit {status}: {err}")
    process = start("in.wav", "ir.wav", "pipe.wav", "-q")  # no reader
    until_ready(process)
    time.sleep(0.1 * SLOW)
    check(process.poll() is None, f"a FIFO without a reader: exit {process.poll()}")
    process.send_signal(signal.SIGTERM)
    finish(process)
    check(process.returncode == 130, f"a FIFO without a reader, interrupted: exit {process.returncode}")
    os.unlink("pipe.wav")


def full(job):
    """A limit on file size, or a full device: exit 1, the reason, nothing left."""
    room = job.rng.randrange(0, len(job.want))

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    older = job.rng.random() < 0.5
    if older:
        with open("out.wav", "wb") as f:
            f.write(b"an older output")
    fails(1, "out.wav", "in.wav", "ir.wav", "out.wav", "-q", preexec_fn=limit)
    if older:
        os.unlink("out.wav")
    with open("/dev/full", "wb") as f:
        status, _, err = run("in.wav", "ir.wav", "-", "-q", stdout=f)
    check(status == 1 and "No space left" in err, f"/dev/full: exit {status}: {err}")


def bad_input(job):
    """A damaged input: a reason and nothing left, or the samples that it still holds."""
    data = bytearray(read_bytes("in.wav"))
    for _ in range(job.rng.randint(1, 8)):
        data[job.rng.randrange(min(len(data), 60))] = job.rng.randrange(256)
    data = data[: job.rng.choice([len(data), job.rng.randrange(len(data))])]
    with open("bad.wav", "wb") as f:
        f.write(data)
    before = state()
    for arguments, given in ((("bad.wav",), None), (("-",), bytes(data))):
        status, _, err = run(*arguments, "ir.wav", "out.wav", "-t", "1", given=given)
        if status:
            check(status == 1 and err.count("\n") >= 1, f"a bad input: exit {status}: {err}")
            check(state() == before, "a bad input left something")
        else:
            os.unlink("out.wav")
    os.unlink("bad.wav")


def in_place(job):
    """OUT may be IN, and IR with --force; without it IR stays."""
    shutil.copy("in.wav", "a.wav")
    done("a.wav", "ir.wav", "a.wav", "-q", "-t", str(job.rng.randint(1, 4)))
    job.out_is_whole("a.wav")
    shutil.copy("ir.wav", "a.wav")
    fails(1, "the response is read from this file", "in.wav", "a.wav", "a.wav", "-q")
    check(filecmp.cmp("ir.wav", "a.wav", False), "IR was changed")
    done("in.wav", "a.wav", "a.wav", "-q", "--force")
    job.out_is_whole("a.wav")


def words(job):
    """Notes and errors on standard error, the report alone on standard output; both silent with --quiet."""
    out, _ = done("in.wav", "ir.wav", "out.wav", "--report", "json")
    json.loads(out)
    out, err = done("in.wav", "ir.wav", "out.wav", "-q")
    check(out == b"" and err == "", f"--quiet printed {out!r} {err!r}")
    fails(2, "--gain", "in.wav", "ir.wav", "out.wav", "--gain=loud")
    fails(1, "missing.wav", "missing.wav", "ir.wav", "out.wav")
    os.unlink("out.wav")


def batches(job):
    """A batch killed at a random moment and resumed gives the outputs of one that was not."""
    count = 24
    with open("list.csv", "w") as f:
        f.write("input,response,output\n")
        f.writelines(f"in.wav,ir.wav,t{i}.wav\n" for i in range(count))
    done("batch", "list.csv", "--out", "whole", "-q", "-b", "cpu")
    for _ in range(job.rng.randint(1, 3)):
        process = start("batch", "list.csv", "--out", "cut", "-q", "-b", "cpu", "--resume", "--workers", str(job.rng.randint(1, 4)))
        time.sleep(job.rng.uniform(0, 0.04 * SLOW))
        process.send_signal(job.rng.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT]))
        process.communicate(timeout=LIMIT)
    done("batch", "list.csv", "--out", "cut", "-q", "-b", "cpu", "--resume")
    for i in range(count):
        check(read_bytes(f"whole/t{i}.wav") == job.want, f"batch: t{i}.wav is not what the command alone gives")
        check(read_bytes(f"cut/t{i}.wav") == job.want, f"resumed: t{i}.wav differs")
    lines = [json.loads(line) for line in open("cut/results.jsonl", encoding="utf-8")]
    check({line["output"] for line in lines if line.get("status") == "done"} == {f"t{i}.wav" for i in range(count)},
          "results.jsonl does not name every output as done")
    leftovers = [n for n in os.listdir("cut") if n != "results.jsonl" and not n.startswith("t")]
    check(not leftovers, f"left in the folder: {leftovers}")
    for folder in ("whole", "cut"):
        shutil.rmtree(folder)
    os.unlink("list.csv")


OWN_NAMES = ["results.jsonl", "RESULTS.jsonl", "manifest.csv", "metadata.csv", "wav.scp", "cuts.jsonl.gz", ".gpuconv-lock",
             ".gpuconv-00", "000000.tar", "000001.tar", "000007.tar", "000000.tar/a.wav", "results.jsonl/a.wav", "list.csv",
             "irs.scp", "in.wav", "ir.wav", "in.tar", "a.wav", "a.early.wav", "sub/a.wav", "sub/results.jsonl", "sub/../a.wav",
             "here/manifest.csv", "here/a.wav", "log.wav", "b.wav"]


def pack(path, names):
    with tarfile.open(path, "w") as tar:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = os.path.getsize("in.wav")
            with open("in.wav", "rb") as f:
                tar.addfile(member, f)


def outputs_of(folder, line, index, shard_size):
    """Returns the bytes of the output that a line of results.jsonl describes."""
    if not shard_size:
        return read_bytes(f"{folder}/{line['output']}")
    with tarfile.open(f"{folder}/{index // shard_size:06}.tar") as tar:
        return tar.extractfile(line["output"]).read()


def own_names(job):
    """Whatever outputs, inputs, lists and links are called: what is read stays, and results.jsonl tells the truth."""
    rng = job.rng
    os.makedirs("wet/sub", exist_ok=True)
    shutil.copy("ir.wav", "wet/ir.wav")
    pack("wet/in.tar", ["k.wav"])
    pack("wet/000000.tar", ["k.wav", "a.wav"])
    with open("wet/irs.scp", "w") as f:
        f.write("k ir.wav\n")
    if rng.random() < 0.5:
        os.symlink(".", "wet/here")
        os.symlink("results.jsonl", "wet/log.wav")
    inputs = ["in.wav"] + ["wet/in.tar/k.wav", "wet/000000.tar/k.wav"] * (rng.random() < 0.1)
    options = rng.choice([[], [], ["--shard-size", "1"], ["--shard-size", "3"], ["--shard-size", "100"]])
    size = int(options[1]) if options else 0
    rows = [(rng.choice(inputs), rng.choice(["ir.wav"] + ["wet/ir.wav"] * (rng.random() < 0.05)), rng.choice(OWN_NAMES))
            for _ in range(rng.randint(1, 12))]
    picked = rng.random() < 0.4
    name = rng.choice(["list.csv", "wet/list.csv", "wet/manifest.csv"])
    with open(name, "w") as f:
        f.write("input,output,format\n" if picked else "input,response,output,format\n")
        f.writelines(f"{i},{o},wav\n" if picked else f"{i},{r},{o},wav\n" for i, r, o in rows)
    options += ["--irs", rng.choice(["ir.wav", "wet/irs.scp"])] * picked + ["--resume"] * (rng.random() < 0.3)
    options += ["--early", "5"] * (rng.random() < 0.3)
    valid = [row for n, row in enumerate(rows) if ".." not in row[2] and row[2] not in [r[2] for r in rows[:n]]]
    read = {name} | {i.split(".tar/")[0] + ".tar" if ".tar/" in i else i for i, _, _ in valid}
    read |= ({"wet/irs.scp"} if "wet/irs.scp" in options else set()) if picked else {r for _, r, _ in valid}
    before, folder = {path: read_bytes(path) for path in read}, state()
    status, _, err = run("batch", name, "--out", rng.choice(["wet", "./wet/", "wet/sub/.."]), "-b", "cpu", *options)
    if status == 2:
        check(state() == folder, f"a batch that was refused changed the folder: {err}")
    else:
        lines = [json.loads(line) for line in open("wet/results.jsonl", encoding="utf-8")]
        check([line["line"] for line in sorted(lines, key=lambda x: x["line"])] == list(range(2, 2 + len(rows))),
              f"results.jsonl does not list each of {rows} once: {lines}")
        check((status == 0) == all(line["status"] == "done" for line in lines), f"exit {status}, but {lines}")
        for line in lines:
            if line["status"] == "done":
                check(outputs_of("wet", line, line["line"] - 2, size) == job.want, f"{line['output']} is not what was written")
        for path in read:
            check(read_bytes(path) == before[path], f"{path} was read, and replaced: {rows}")
        if picked:
            with open("wet/manifest.csv", encoding="utf-8") as f:
                check(f.readline().startswith("input,response,output,"), "manifest.csv is no manifest")
    left = [n for _, _, files in os.walk("wet") for n in files if n.startswith(".gpuconv-")]
    check(not left, f"left in the folder: {left}")
    shutil.rmtree("wet")
    if os.path.exists("list.csv"):
        os.unlink("list.csv")


def no_driver(job):
    """Without a driver the program runs on the CPU; asked for CUDA it refuses and leaves nothing."""
    hidden = dict(os.environ, CUDA_VISIBLE_DEVICES="")
    done("in.wav", "ir.wav", "out.wav", "-q", env=hidden)
    job.out_is_whole()
    fails(1, "", "in.wav", "ir.wav", "out.wav", "-b", "cuda", env=hidden)


CHECKS = [exact, same_bytes, rates, levels, titles, descriptors, signals, waiting, links, fifos, full, bad_input, in_place,
          words, batches, own_names, no_driver]


def memory():
    """Memory does not grow with the input: ten times the length, at most 4 MiB more."""
    if SLOW > 1:
        return
    wav("ir.wav", [0.5] * 100, 1, 48000, "float")
    peaks = []
    for seconds in (60, 600):
        size = seconds * 48000 * 4
        with open("long.wav", "wb") as f:
            f.write(b"RIFF" + struct.pack("<I", size + 36) + b"WAVE")
            f.write(struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 2, 48000, 192000, 4, 16) + b"data" + struct.pack("<I", size))
            f.truncate(44 + size)
        process = start("long.wav", "ir.wav", "out.wav", "-q")
        _, status, usage = os.wait4(process.pid, 0)
        check(status == 0, f"a long input: status {status}")
        peaks.append(usage.ru_maxrss)
    check(peaks[1] - peaks[0] < 4096, f"memory grows with the length: {peaks} KiB")
    os.unlink("long.wav")


def main():
    rounds = int(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int.from_bytes(os.urandom(4), "little")
    tries = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        memory()
        for number in range(rounds):
            for name in os.listdir("."):
                shutil.rmtree(name) if os.path.isdir(name) else os.unlink(name)
            job = Job(random.Random(seed + number))
            for promise in CHECKS:
                try:
                    promise(job)
                except (Broken, OSError, ValueError, subprocess.TimeoutExpired) as why:
                    print(f"FAILED: {promise.__name__}: {why}\n  job: {job}\n  again: promises.py 1 {seed + number}",
                          file=sys.stderr)
                    os.chdir("/")
                    return 1
                tries += 1
        os.chdir("/")
    print(f"{rounds} rounds from seed {seed}: {tries} checks of {len(CHECKS)} promises, nothing lost")
    return 0


if __name__ == "__main__":
    sys.exit(main())
