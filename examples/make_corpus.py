#!/usr/bin/env python3
"""Makes a corpus to try `gpuconv batch` with: utterances, room responses and noises, with a lhotse manifest of each.

Usage: make_corpus.py FOLDER [UTTERANCES [RESPONSES [NOISES]]]   (default: 2000 500 50; needs numpy and soundfile)

FOLDER gets speech/*.flac (16 kHz, 5 to 15 s, one in fifty damaged), rooms/*.flac (with silence before the direct
sound, and in some a reflection that is louder than it), noises/*.flac, and recordings.jsonl.gz, rooms.jsonl.gz,
noises.jsonl.gz. The same arguments give the same files. Then, for example:

    gpuconv batch FOLDER/recordings.jsonl.gz --irs FOLDER/rooms.jsonl.gz --preset speech --format flac --out wet
"""
import gzip
import json
import os
import sys

import numpy as np
import soundfile as sf

RATE = 16000


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


def room(random, index):
    """Returns a response: silence, direct sound, reflections, decay."""
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


def write_all(folder, kind, count, make):
    """Writes `count` files of a kind, and their manifest."""
    os.makedirs(f"{folder}/{kind}", exist_ok=True)
    recordings = []
    for i in range(count):
        sound, file = make(i), f"{folder}/{kind}/{kind}-{i:06d}.flac"
        sf.write(file, sound, RATE, subtype="PCM_16")
        recordings.append((f"{kind}-{i:06d}", file, len(sound)))
    return recordings


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    folder = sys.argv[1]
    counts = [int(a) for a in sys.argv[2:]] + [2000, 500, 50][len(sys.argv) - 2:]
    random = np.random.default_rng(1)
    material = speech(random, 300)

    def utterance(_):
        n = int(random.uniform(5, 15) * RATE)
        at = random.integers(0, len(material) - n)
        return material[at:at + n] * random.uniform(0.2, 1)

    recordings = write_all(folder, "speech", counts[0], utterance)
    for i in range(25, counts[0], 50):  # two in a hundred: half of the file is missing, or it is no audio at all
        file = recordings[i][1]
        with open(file, "r+b") as f:
            f.truncate(os.path.getsize(file) // 2 if i % 100 == 25 else 0)
    write_manifest(f"{folder}/recordings.jsonl.gz", recordings)
    write_manifest(f"{folder}/rooms.jsonl.gz", write_all(folder, "rooms", counts[1], lambda i: room(random, i)))
    write_manifest(f"{folder}/noises.jsonl.gz",
                   write_all(folder, "noises", counts[2], lambda i: speech(random, random.uniform(3, 60))))


main()
