"""batch() of corpora: what it writes passes the rules of Kaldi's validate_data_dir.sh and of lhotse's qa.validate, has
lhotse's level, and what lhotse computes when it loads is refused."""

import gzip
import json
from pathlib import Path

import gpuconv
import numpy as np
import pytest

RATE, FRAMES = 16000, 8000


@pytest.fixture(scope="module")
def sounds(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("sounds"), np.random.default_rng(7)
    for name in "ab":
        gpuconv.write(folder / f"{name}.wav", 0.1 * rng.standard_normal(FRAMES).astype(np.float32), RATE, encoding="s16")
    for number in range(2):
        room = np.exp(-np.arange(1200) / 150) * rng.standard_normal(1200)
        room[0] = 1.2 * np.abs(room).max()  # lhotse aligns to the largest value, gpuconv to the largest magnitude
        gpuconv.write(folder / f"room{number}.wav", (room / room[0]).astype(np.float32), RATE)
    return folder


# ---- Kaldi ----

def table(path):
    """Returns the fields of each line: an identifier, which is sorted and unique, and the rest."""
    text = path.read_bytes()
    assert text.endswith(b"\n"), f"{path.name}: no newline at the end"
    lines = [line.split() for line in text.splitlines()]
    ids = [line[0] for line in lines]
    assert ids == sorted(set(ids)), f"{path.name}: not sorted, or not unique"
    return lines


def check_kaldi(folder):
    """Fails where validate_data_dir.sh --no-feats would (and --no-text if there is no text)."""
    speakers = table(folder / "utt2spk")
    assert all(len(line) == 2 for line in speakers)
    assert sorted(speakers, key=lambda line: (line[1], line[0])) == speakers, "utt2spk: not sorted by speaker"
    turned = [[utterance, line[0]] for line in table(folder / "spk2utt") for utterance in line[1:]]
    assert turned == speakers, "spk2utt does not match utt2spk"
    utterances = [line[0] for line in speakers]
    if (folder / "text").exists():
        assert [line[0] for line in table(folder / "text")] == utterances
        assert not {b"<s>", b"</s>", b"#0"} & set((folder / "text").read_bytes().split())
    recordings = [line[0] for line in table(folder / "wav.scp")]
    assert all(len(line) == 2 and not line[1].startswith(b"~") for line in table(folder / "wav.scp"))
    if (folder / "segments").exists():
        segments = table(folder / "segments")
        assert all(len(line) == 4 and float(line[3]) > float(line[2]) >= 0 for line in segments)
        assert [line[0] for line in segments] == utterances
        assert sorted({line[1] for line in segments}) == recordings
    else:
        assert recordings == utterances
    return utterances


def kaldi_folder(path, sounds, **files):
    path.mkdir()
    (path / "wav.scp").write_text(f"rec-b {sounds}/b.wav\nrec-a {sounds}/a.wav\n")
    for name, text in files.items():
        (path / name).write_text(text)
    return path


WORDS = "s1-u2 bon jour\ns1-u1 hello\ns2-u1 \ns1-u10 caf\u00e9 noir\n"
SPEAKERS = "s1-u2 s1\ns1-u1 s1\ns2-u1 s2\ns1-u10 s1\n"
SEGMENTS = "s2-u1 rec-b 0 0.2\ns1-u2 rec-a 0.25 0.45\ns1-u1 rec-a 0 0.25\ns1-u10 rec-a 0.1 -1\n"


@pytest.mark.parametrize("pick", ["random", "all"])
def test_outputs_are_a_data_folder_of_kaldi(sounds, tmp_path, pick):
    data = kaldi_folder(tmp_path / "data", sounds, text=WORDS, utt2spk=SPEAKERS, segments=SEGMENTS)
    gpuconv.batch(data, irs=[sounds / "room0.wav", sounds / "room1.wav"], pick=pick, out=tmp_path / "out", preset="speech")
    utterances = check_kaldi(tmp_path / "out")
    assert len(utterances) == (8 if pick == "all" else 4)
    words = dict(line.split(" ", 1) for line in (tmp_path / "out" / "text").read_text().splitlines())
    assert words["s1-u10" + ("-room1" if pick == "all" else "")] == "caf\u00e9 noir"
    assert {line[2] for line in table(tmp_path / "out" / "segments")} == {b"0"}
    lengths = {line[0].decode()[:5]: float(line[3]) for line in table(tmp_path / "out" / "segments")}
    assert lengths["s2-u1"] == pytest.approx(0.2) and lengths["s1-u2"] == pytest.approx(0.2)


def test_a_folder_without_speakers_gets_one_for_each_utterance(sounds, tmp_path):
    data = kaldi_folder(tmp_path / "data", sounds)
    gpuconv.batch(data, irs=sounds / "room0.wav", out=tmp_path / "out", preset="speech", absolute=True)
    assert check_kaldi(tmp_path / "out") == [b"rec-a", b"rec-b"]
    assert not (tmp_path / "out" / "text").exists() and not (tmp_path / "out" / "segments").exists()


def test_an_utterance_without_transcript_or_speaker_is_refused(sounds, tmp_path):
    data = kaldi_folder(tmp_path / "two", sounds, utt2spk="rec-a s\nrec-b s t\n")
    with pytest.warns(UserWarning, match="utt2spk has no line with one speaker"):
        assert gpuconv.batch(data, irs=sounds / "room0.wav", out=tmp_path / "one", preset="speech").failed == 1
    data = kaldi_folder(tmp_path / "data", sounds, text="rec-a x\n", utt2spk="rec-a s\nrec-b s\n")
    with pytest.warns(UserWarning, match="text has no line"):
        result = gpuconv.batch(data, irs=sounds / "room0.wav", out=tmp_path / "out", preset="speech")
    assert result.failed == 1 and check_kaldi(tmp_path / "out") == [b"rec-a"]
    with pytest.raises(ValueError, match="lies in .*, the folder of its outputs"):
        gpuconv.batch(data, irs=sounds / "room0.wav", out=data, preset="speech")


def test_only_data_folders_of_kaldi_reserve_their_names(sounds, tmp_path):
    for name in ("text", "segments"):
        (tmp_path / "in" / name).mkdir(parents=True)
        (tmp_path / "in" / name / "a.wav").write_bytes((sounds / "a.wav").read_bytes())
    result = gpuconv.batch(inputs=str(tmp_path / "in" / "**" / "*.wav"), irs=sounds / "room0.wav", out=tmp_path / "out")
    assert (result.done, result.failed) == (2, 0) and (tmp_path / "out" / "segments" / "a.wav").exists()


# ---- lhotse ----

def recording(sounds, name="a"):
    return {"id": f"rec-{name}", "sources": [{"type": "file", "channels": [0], "source": f"{sounds}/{name}.wav"}],
            "sampling_rate": RATE, "num_samples": FRAMES, "duration": FRAMES / RATE, "channel_ids": [0]}


def cut(sounds, **more):
    return {"id": "cut", "start": 0, "duration": FRAMES / RATE, "channel": 0, "supervisions": [], "recording": recording(sounds),
            "type": "MonoCut", **more}


def computed(sounds):
    """Returns what lhotse computes when it loads, and what the refusal says."""
    two = {**recording(sounds), "channel_ids": [0, 1]}
    two["sources"] = [{**two["sources"][0], "channels": [0, 1]}]
    speed = {"name": "Speed", "kwargs": {"factor": 1.1}}
    padding = {"id": "pad", "duration": 1, "sampling_rate": RATE, "feat_value": -23, "num_samples": RATE, "type": "PaddingCut"}
    return {
        "perturbed": (cut(sounds, recording={**recording(sounds), "transforms": [speed]}), "lhotse changes the recording"),
        "padded": ({"id": "mix", "tracks": [{"cut": cut(sounds), "type": "MonoCut", "offset": 0},
                                            {"cut": padding, "type": "PaddingCut", "offset": 0.5}], "type": "MixedCut"},
                   "the cut is mixed or padded"),
        "padding": (padding, "the cut has no recording"),
        "one channel": (cut(sounds, recording=two), "only some channels"),
        "some channels": (cut(sounds, recording=two, channel=[1], type="MultiCut"), "only some channels"),
    }


@pytest.mark.parametrize("kind", ["perturbed", "padded", "padding", "one channel", "some channels"])
def test_what_lhotse_computes_is_refused_with_how_to_convert_it(sounds, tmp_path, kind):
    line, reason = computed(sounds)[kind]
    (tmp_path / "cuts.jsonl").write_text(json.dumps(line) + "\n" + json.dumps(cut(sounds, id="good")) + "\n")
    with pytest.warns(UserWarning, match=reason):
        result = gpuconv.batch(tmp_path / "cuts.jsonl", irs=sounds / "room0.wav", out=tmp_path / "out", preset="speech")
    assert (result.done, result.failed) == (1, 1)
    assert kind == "padding" or "cuts.save_audios(FOLDER)" in Path(result.results).read_text()


def test_saved_audio_of_lhotse_is_read(sounds, tmp_path):
    lhotse = pytest.importorskip("lhotse")
    made = [computed(sounds)[kind][0] for kind in ("perturbed", "padded")]
    lhotse.CutSet.from_dicts(made).save_audios(tmp_path / "saved").to_file(tmp_path / "cuts.jsonl.gz")
    result = gpuconv.batch(tmp_path / "cuts.jsonl.gz", irs=sounds / "room0.wav", out=tmp_path / "out", preset="speech")
    assert (result.done, result.failed) == (2, 0)


def test_absolute_paths_are_read_from_every_folder(sounds, tmp_path, monkeypatch):
    (tmp_path / "cuts.jsonl").write_text(json.dumps(cut(sounds)) + "\n")
    monkeypatch.chdir(tmp_path)
    for absolute in (False, True):
        gpuconv.batch("cuts.jsonl", irs=sounds / "room0.wav", out="out", preset="speech", absolute=absolute)
        with gzip.open("out/cuts.jsonl.gz", "rt") as file:
            source = json.loads(file.read())["recording"]["sources"][0]["source"]
        assert source == (str(tmp_path / "out" / "cut.wav") if absolute else "out/cut.wav")


def test_level_match_is_the_level_of_lhotse(sounds, tmp_path):
    """As Recording.reverb_rir(normalize_output=True), its default: the power of the output is that of the input."""
    lhotse = pytest.importorskip("lhotse")
    (tmp_path / "recordings.jsonl").write_text(json.dumps(recording(sounds)) + "\n")
    gpuconv.batch(tmp_path / "recordings.jsonl", irs=sounds / "room0.wav", out=tmp_path / "out", preset="speech", level="input",
                  encoding="float")
    mine = gpuconv.read(tmp_path / "out" / "rec-a.wav")[0]
    theirs = lhotse.Recording.from_file(sounds / "a.wav").reverb_rir(lhotse.Recording.from_file(sounds / "room0.wav")).load_audio()
    assert np.abs(mine - theirs).max() < 1e-5
