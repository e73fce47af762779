"""batch() with the options of the command: the same bytes, the same refusals; lists of other programs, shards, noise."""

import gzip
import json
import subprocess
import tarfile

import gpuconv
import numpy as np
import pytest


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Three short signals, two rooms of different lengths, and a noise."""
    folder, rng = tmp_path_factory.mktemp("corpus"), np.random.default_rng(5)
    for number in range(3):
        gpuconv.write(folder / f"s{number}.wav", 0.1 * rng.standard_normal(6000 + 500 * number).astype(np.float32), 16000, encoding="s16")
    for number in range(2):
        decay = np.exp(-np.arange(1500) / (100 + 200 * number))
        gpuconv.write(folder / f"room{number}.wav", (decay * rng.standard_normal(1500)).astype(np.float32), 16000)
    gpuconv.write(folder / "noise.wav", 0.1 * rng.standard_normal(3000).astype(np.float32), 16000)
    return folder


def run(command, *arguments):
    subprocess.run([command, "batch", "-q", *map(str, arguments)], check=True, capture_output=True)


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


OPTIONS = [
    ({"preset": "speech", "format": "flac"}, ["--preset", "speech", "--format", "flac"]),
    ({"wet": (-12, -3), "dry": 0, "gain": -1.5, "normalize": "energy"},
     ["--wet", "-12:-3", "--dry", "0", "--gain", "-1.5", "--normalize", "energy"]),
    ({"length": "input", "level": "rms:-20", "encoding": "s24", "dither": "tpdf"},
     ["--length", "input", "--level", "rms:-20", "--encoding", "s24", "--dither", "tpdf"]),
    ({"early": 20, "trim": -40, "reverse": False, "minimum_phase": True, "predelay": 0.01},
     ["--early", "20", "--trim", "-40", "--minimum-phase", "--predelay", "0.01"]),
    ({"noises": "noise.wav", "snr": (5, 20), "preset": "speech", "gain": (-6, 0), "trim": -50},
     ["--noises", "noise.wav", "--snr", "5:20", "--preset", "speech", "--gain", "-6:0", "--trim", "-50"]),
    ({"format": "flac", "compression": 8, "level": "input", "length": "input"},
     ["--format", "flac", "--compression", "8", "--level-match", "--length", "input"]),
    ({"noises": "noise.wav", "snr": (5, 20)}, ["--noises", "noise.wav", "--snr", "5:20"]),
    ({"rooms": "size=3:5x3x3 rt60=0.2:0.3", "early": 30}, ["--rooms", "size=3:5x3x3 rt60=0.2:0.3", "--early", 30]),
    ({"series": ["room0.wav", "room1.wav"], "tail": "auto:-50", "mode": "full"},
     ["--series", "room0.wav", "--series", "room1.wav", "--tail", "auto:-50", "--mode", "full"]),
]


@pytest.mark.parametrize("keywords, arguments", OPTIONS)
def test_options_give_the_bytes_of_the_command(corpus, tmp_path, monkeypatch, command, keywords, arguments):
    monkeypatch.chdir(corpus)
    responses = [] if "rooms" in keywords else ["room0.wav", "room1.wav"]
    result = gpuconv.batch(inputs="s*.wav", irs=responses, out=tmp_path / "mine", seed=3, **keywords)
    assert (result.done, result.failed) == (3, 0)
    run(command, "--inputs", "s*.wav", *["--irs", *responses][: 3 * bool(responses)], "--seed", 3, "--out", tmp_path / "theirs", *arguments)
    mine, theirs = contents(tmp_path / "mine"), contents(tmp_path / "theirs")
    assert mine.keys() == theirs.keys()
    for name in mine:
        assert name == "results.jsonl" or mine[name] == theirs[name], name


def test_wrong_rooms_are_refused_with_value_and_range(corpus, tmp_path):
    for rooms, words in [("size=0x3x3", "size '0x3x3': metres .* from 0.1 to 1000"), ("height=3", "'height'")]:
        with pytest.raises(ValueError, match=words):
            gpuconv.batch(inputs=str(corpus / "s*.wav"), rooms=rooms, out=tmp_path)
    with pytest.raises(ValueError, match="exclude each other"):
        gpuconv.batch(inputs=str(corpus / "s*.wav"), irs="room0.wav", rooms="rt60=0.3", out=tmp_path)


def test_parts_of_the_inputs_and_of_the_noise(corpus, tmp_path):
    """Defaults of columns that have no option: the bytes that the same columns of a manifest give."""
    gpuconv.batch(inputs=str(corpus / "s*.wav"), irs=str(corpus / "room*.wav"), noises=str(corpus / "noise.wav"), snr=10, seed=3,
                  offset=0.1, input_length=0.2, noise_offset=0.05, out=tmp_path / "a")
    rows = (tmp_path / "a" / "manifest.csv").read_text()
    assert {"offset", "length", "noise_offset"} <= set(rows.splitlines()[0].split(","))
    gpuconv.batch(tmp_path / "a" / "manifest.csv", out=tmp_path / "b", seed=3)
    made = sorted((tmp_path / "a").glob("*.wav"))
    assert len(made) == 3
    for path in made:
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()
        taps = 1500
        assert gpuconv.read(path).samples.shape[1] == 3200 + taps - 1
    picked = gpuconv.batch(inputs=str(corpus / "s*.wav"), irs=corpus / "room0.wav", offset="random", input_length=0.2, out=tmp_path / "c")
    assert picked.done == 3


def test_shards(corpus, tmp_path):
    result = gpuconv.batch(inputs=str(corpus / "s*.wav"), irs=corpus / "room0.wav", out=tmp_path, shard_size=2)
    assert result.done == 3
    names = [tarfile.open(path).getnames() for path in sorted(tmp_path.glob("*.tar"))]
    assert [len([name for name in shard if name.endswith(".wav")]) for shard in names] == [2, 1]


def test_the_lists_of_kaldi_and_lhotse(corpus, tmp_path):
    kaldi = tmp_path / "wav.scp"
    kaldi.write_text("".join(f"utt{number} {corpus}/s{number}.wav\n" for number in range(3)))
    gpuconv.batch(kaldi, irs=str(corpus / "room*.wav"), out=tmp_path / "kaldi", preset="speech")
    lines = (tmp_path / "kaldi" / "wav.scp").read_text().splitlines()
    assert [line.split()[0] for line in lines] == ["utt0", "utt1", "utt2"]
    lhotse = tmp_path / "recordings.jsonl"
    lhotse.write_text("".join(json.dumps({
        "id": f"rec{number}", "sources": [{"type": "file", "channels": [0], "source": f"{corpus}/s{number}.wav"}],
        "sampling_rate": 16000, "num_samples": 6000 + 500 * number, "duration": (6000 + 500 * number) / 16000}) + "\n"
        for number in range(3)))
    result = gpuconv.batch(lhotse, irs=corpus / "room1.wav", out=tmp_path / "lhotse", length="input")
    with gzip.open(tmp_path / "lhotse" / "recordings.jsonl.gz", "rt") as file:
        made = [json.loads(line) for line in file]
    assert [recording["num_samples"] for recording in made] == [6000, 6500, 7000] and result.done == 3
    with pytest.raises(ValueError, match="wav.scp: is read by the batch and lies in .*, the folder of its outputs"):
        gpuconv.batch(kaldi, irs=corpus / "room0.wav", out=tmp_path)


def test_failures_are_told(corpus, tmp_path):
    (tmp_path / "bad.wav").write_text("no sound")
    with pytest.warns(UserWarning, match="1 failed like this: .*bad.wav: not readable as audio"):
        result = gpuconv.batch(inputs=[tmp_path / "bad.wav", corpus / "s0.wav"], irs=corpus / "room0.wav", out=tmp_path / "out")
    assert (result.done, result.failed) == (1, 1)


@pytest.mark.parametrize(
    "keywords, kind, text",
    [
        ({"wett": 3}, TypeError, "no option 'wett'; the options are ir_layout, ir_rate"),
        ({"preset": "music"}, ValueError, "preset='music': use 'none', 'speech'"),
        ({"wet": (1, 2, 3)}, ValueError, r"wet=\(1, 2, 3\): use a number, or a range \(low, high\)"),
        ({"wet": (3, 1)}, ValueError, "the lower end of a range comes first"),
        ({"wet": None, "dry": [1]}, ValueError, "dry="),
        ({"gain": {}}, TypeError, r"gain=\{\}: use a number, or a range"),
        ({"offset": "random"}, ValueError, "a random offset needs a length"),
        ({"trim": 3}, ValueError, r"trim: must be -300 to 0 dB, not '3.0'"),
        ({"level": "loud"}, ValueError, "level: must be peak:DB"),
        ({"early": -1}, ValueError, "early: "),
        ({"encoding": "s17"}, ValueError, "encoding"),
        ({"noises": "n.wav"}, ValueError, r"noises need snr, such as snr=\(5, 20\)"),
        ({"tail": 1, "length": "input"}, ValueError, "exclude each other"),
        ({"workers": 1.5}, TypeError, "workers=1.5: use a whole number"),
        ({"devices": [-1]}, ValueError, "devices=-1: use 0 to 1023"),
        ({"shard_size": -1}, ValueError, "shard_size=-1: use 0 or more"),
        ({"pick": "best"}, ValueError, "pick='best'"),
        ({"inputs": "nothing-here*"}, OSError, "nothing-here"),
        ({"irs": None}, TypeError, "either a manifest, or inputs and irs"),
        ({"irs": [3]}, TypeError, "irs=3: use the name of a file"),
    ],
)
def test_bad_options_say_what_fits(corpus, tmp_path, keywords, kind, text):
    given = {"inputs": str(corpus / "s0.wav"), "irs": str(corpus / "room0.wav"), "out": tmp_path / "out", **keywords}
    with pytest.raises(kind, match=text):
        gpuconv.batch(**given)


@pytest.fixture(params=[("random", "_rvb"), ("all", "_rvb"), ("cycle", "")], ids=str)
def of_lhotse(request, corpus, tmp_path):
    """Batches of a CutSet and a RecordingSet, with responses of one and two channels: pick and suffix."""
    pick, suffix = request.param
    lines = [{"id": f"cut{number}", "start": 0.05, "duration": 0.3, "channel": 1, "type": "MonoCut",
              "supervisions": [{"id": f"sup{number}", "recording_id": f"rec{number}", "start": 0, "duration": 0.3, "channel": 1, "text": "a"}],
              "recording": {"id": f"rec{number}", "sources": [{"type": "file", "channels": [1], "source": f"{corpus}/s{number}.wav"}],
                            "sampling_rate": 16000, "num_samples": 6000 + 500 * number, "duration": (6000 + 500 * number) / 16000,
                            "channel_ids": [1]}} for number in range(3)]
    (tmp_path / "cuts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "recordings.jsonl").write_text("".join(json.dumps(line["recording"]) + "\n" for line in lines))
    gpuconv.write(tmp_path / "pair.wav", np.ones((2, 3), np.float32), 16000)
    irs = [corpus / "room0.wav", tmp_path / "pair.wav"]
    for kind in ("cuts", "recordings"):
        gpuconv.batch(tmp_path / f"{kind}.jsonl", irs=irs, pick=pick, out=tmp_path / kind, preset="speech", id_suffix=suffix)
    return pick, suffix


def test_lists_for_lhotse_have_identifiers_of_their_own(of_lhotse, tmp_path):
    pick, suffix = of_lhotse
    with gzip.open(tmp_path / "cuts" / "cuts.jsonl.gz", "rt") as file:
        made = [json.loads(line) for line in file]
    ids = [cut["id"] for cut in made]
    assert len(set(ids)) == (6 if pick == "all" else 3) and all(name.startswith("cut") and name.endswith(suffix) for name in ids)
    supervisions = [(cut, supervision) for cut in made for supervision in cut["supervisions"]]
    assert len({supervision["id"] for _, supervision in supervisions}) == len(made)
    for cut, supervision in supervisions:
        assert supervision["recording_id"] == cut["recording"]["id"] == cut["id"] and supervision["channel"] == cut["channel"]
        assert supervision["id"].startswith("sup") and supervision["id"].endswith(suffix)


def test_lists_for_lhotse_are_valid(of_lhotse, tmp_path):
    lhotse = pytest.importorskip("lhotse")
    lhotse.qa.validate(lhotse.load_manifest(tmp_path / "cuts" / "cuts.jsonl.gz"), read_data=True)
    lhotse.qa.validate(lhotse.load_manifest(tmp_path / "recordings" / "recordings.jsonl.gz"), read_data=True)
