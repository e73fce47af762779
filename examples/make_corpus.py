#!/usr/bin/env python3
"""Makes a corpus to try `gpuconv batch` with: utterances, room responses and noises, with a lhotse manifest of each.

Usage: make_corpus.py FOLDER [UTTERANCES [RESPONSES [NOISES]]]   (default: 2000 500 50; needs numpy and soundfile)

FOLDER gets speech/*.flac (16 kHz, 5 to 15 s, one in fifty damaged), rooms/*.flac (with silence before the direct
sound, and in some a reflection that is louder than it), noises/*.flac, and recordings.jsonl.gz, rooms.jsonl.gz,
noises.jsonl.gz. The same arguments give the same files. It uses all cores. Then, for example:

    gpuconv batch FOLDER/recordings.jsonl.gz --irs FOLDER/rooms.jsonl.gz --preset speech --format flac --out wet
"""
import gzip
import json
import multiprocessing
import os
import sys

if {"-h", "--help"} & set(sys.argv[1:]):
    sys.exit(print(__doc__))

import numpy as np
import soundfile as sf

RATE = 16000
material = None  # what utterances are parts of


def speech(random, seconds):
    """Returns noise with the long-term spectrum and the syllables of speech, roughly."""
    n = int(seconds * RATE)
    spectrum = np.fft.rfft(random.standard_normal(n))
    frequency = np.fft.rfftfreq(n, 1 / RATE)
    spectrum *= 1 / (1 + (frequency / 500) ** 2) * (frequency > 60)
    sound = np.fft.irfft(spectrum, n)
    knots = np.arange(0, n + 4000, 2000)
    syllables = np.interp(np.arange(n), knots, random.random(len(knots)) ** 2)
    sound *= syllables
    return 0.5 * sound / np.abs(sound).max()


def utterance(part):
    """Returns a part of the material: begin, frames, gain."""
    begin, frames, gain = part
    return material[begin:begin + frames] * gain


def noise(seed):
    random = np.random.default_rng(seed)
    return speech(random, random.uniform(3, 60))


def room(index):
    """Returns a response: silence, direct sound, reflections, decay."""
    random = np.random.default_rng([2, index])
    rt60, silence = random.uniform(0.2, 1.2), random.integers(0, 400)
    n = int(rt60 * RATE)
    tail = random.standard_normal(n) * np.exp(-6.9 * np.arange(n) / (rt60 * RATE)) * 0.1
    tail[0] = 1
    for at in random.integers(30, 800, 6):
        tail[at] += random.uniform(-0.6, 0.6)
    if index % 5 == 0:  # a reflection is louder than the direct sound
        tail[random.integers(40, 300)] = 1.3
    response = np.concatenate([np.zeros(silence), tail])
    return 0.9 * response / np.abs(response).max()


def write_manifest(path, recordings):
    with gzip.open(path, "wt", encoding="utf-8") as f:
        for name, file, frames in recordings:
            f.write(json.dumps({"id": name, "sources": [{"type": "file", "channels": [0], "source": file}],
                                "sampling_rate": RATE, "num_samples": frames, "duration": frames / RATE,
                                "channel_ids": [0]}) + "\n")


def write_one(job):
    """Writes one file. Returns its number of frames."""
    file, make, argument = job
    sound = make(argument)
    sf.write(file, sound, RATE, subtype="PCM_16")
    return len(sound)


def write_all(folder, kind, pool, make, arguments):
    """Writes a file for each argument of `make`. Returns the lines of their manifest."""
    os.makedirs(f"{folder}/{kind}", exist_ok=True)
    files = [f"{folder}/{kind}/{kind}-{i:06d}.flac" for i in range(len(arguments))]
    frames = pool.map(write_one, [(file, make, a) for file, a in zip(files, arguments)], chunksize=8)
    return [(f"{kind}-{i:06d}", file, n) for i, (file, n) in enumerate(zip(files, frames))]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder = sys.argv[1]
    counts = [int(a) for a in sys.argv[2:]] + [2000, 500, 50][len(sys.argv) - 2:]
    random = np.random.default_rng(1)
    global material
    material = speech(random, 300)
    parts = []
    for _ in range(counts[0]):
        frames = int(random.uniform(5, 15) * RATE)
        parts.append((random.integers(0, len(material) - frames), frames, random.uniform(0.2, 1)))

    with multiprocessing.get_context("fork").Pool() as pool:  # the processes have the material
        recordings = write_all(folder, "speech", pool, utterance, parts)
        rooms = write_all(folder, "rooms", pool, room, range(counts[1]))
        noises = write_all(folder, "noises", pool, noise, [[3, i] for i in range(counts[2])])
    for i in range(25, counts[0], 50):  # two in a hundred: half of the file is missing, or it is no audio at all
        file = recordings[i][1]
        with open(file, "r+b") as f:
            f.truncate(os.path.getsize(file) // 2 if i % 100 == 25 else 0)
    write_manifest(f"{folder}/recordings.jsonl.gz", recordings)
    write_manifest(f"{folder}/rooms.jsonl.gz", rooms)
    write_manifest(f"{folder}/noises.jsonl.gz", noises)


if __name__ == "__main__":
    main()
