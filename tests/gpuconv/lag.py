#!/usr/bin/env python3
"""Checks that `gpuconv batch --preset speech` leaves a signal where it was: the cross-correlation of input and output has its
maximum at lag 0 for responses of all kinds. Needs NumPy. Made responses: silence of 0 to 1 s before them, the peak first or
later, reflections, decays, two channels, rates of 8 to 96 kHz. FOLDERs may hold measured ones, for example those of Debian's
guitarix-common and pd-earplug. Usage: lag.py GPUCONV [FOLDER...]"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import wave

import numpy as np

RATE, POINTS = 16000, 1 << 17


def write_wav(path, samples, rate):
    """Writes frames x channels of -1 .. 1 as 16 bit."""
    with wave.open(str(path), "wb") as f:
        f.setnchannels(samples.shape[1])
        f.setsampwidth(2)
        f.setframerate(rate)
        f.writeframes(np.round(np.clip(samples, -1, 1) * 32767).astype("<i2").tobytes())


def read_float_wav(path):
    data = path.read_bytes()
    channels = struct.unpack("<H", data[22:24])[0]
    at = 12
    while data[at:at + 4] != b"data":
        at += 8 + (struct.unpack("<I", data[at + 4:at + 8])[0] + 1) // 2 * 2
    return np.frombuffer(data[at + 8:at + 8 + struct.unpack("<I", data[at + 4:at + 8])[0]], "<f4").reshape(-1, channels)


def make_responses(folder, random):
    for number in range(111):
        rate = (8000, 16000, 22050, 44100, 48000, 96000)[number % 6]
        silence, decay = int(rate * random.choice([0, 0.001, 0.02, 0.3, 1])), rate * random.uniform(0.01, 0.4)
        frames = silence + int(3 * decay) + 10
        x = np.zeros((frames, 1 + number % 2))
        tail = random.standard_normal((frames - silence, x.shape[1])) * np.exp(-np.arange(frames - silence) / decay)[:, None]
        x[silence:] = 0.02 * tail
        x[silence] = 0.6  # the direct sound
        if number % 3 == 0:  # a reflection that is louder, 5 to 20 ms later
            x[min(frames - 1, silence + int(rate * random.uniform(0.005, 0.02)))] = 0.75
        write_wav(folder / f"made{number}.wav", x, rate)


def lag(x_spectrum, y):
    """The lag of the largest correlation of all channels."""
    best = (0, 0)
    for channel in y.T:
        correlation = np.abs(np.fft.irfft(np.fft.rfft(channel, POINTS) * np.conj(x_spectrum)))
        best = max(best, (correlation.max(), int(correlation.argmax())))
    return best[1] if best[1] < POINTS // 2 else best[1] - POINTS


def main():
    gpuconv, random = str(pathlib.Path(sys.argv[1]).resolve()), np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        (work / "ir").mkdir()
        make_responses(work / "ir", random)
        x = 0.3 * random.standard_normal((3 * RATE, 1))
        write_wav(work / "x.wav", x, RATE)
        patterns = [str(work / "ir/*.wav")]
        patterns += [str(pathlib.Path(folder).resolve() / "**" / f"*.{kind}") for folder in sys.argv[2:] for kind in ("wav", "flac", "aif")
                     if any(pathlib.Path(folder).rglob(f"*.{kind}"))]
        subprocess.run([gpuconv, "batch", "-q", "-b", "cpu", "--inputs", str(work / "x.wav"), "--irs", *patterns, "--pick", "all",
                        "--preset", "speech", "--format", "wav", "--encoding", "float", "--out", str(work / "out")], check=False)
        spectrum = np.fft.rfft(x[:, 0], POINTS)
        lags = {}
        for line in (work / "out/results.jsonl").read_text().splitlines():
            result = json.loads(line)
            if result["status"] == "done":
                y = read_float_wav(work / "out" / result["output"])
                lags[result["response"]] = lag(spectrum, y) if len(y) == len(x) else f"{len(y)} frames instead of {len(x)}"
            else:
                print(result["reason"])
    wrong = {path: value for path, value in lags.items() if value != 0}
    measured = sum("/ir/made" not in path for path in lags)
    print(f"{len(lags)} responses, {measured} of them measured: lag 0 for {len(lags) - len(wrong)}")
    for path, value in wrong.items():
        print(f"{path}: lag {value}")
    sys.exit(1 if wrong or len(lags) < 111 else 0)


main()
