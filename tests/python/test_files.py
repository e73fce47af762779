"""Files and responses: the same bytes and figures as the command, levels of errors, progress, and Ctrl-C."""

import errno
import inspect
import json
import os
import pathlib
import pickle
import subprocess
import sys
import types
import warnings

import gpuconv
import numpy as np
import pytest
from conftest import SOURCE, assert_close, oracle


def run(command, *arguments):
    subprocess.run([command, *map(str, arguments)], check=True, capture_output=True)


JOBS = [
    ("speech.flac", "hall.flac", "wav", {}, []),
    ("speech.flac", "small-room.flac", "flac", {"gain": -6.0}, ["--gain", "-6"]),
    ("strings.flac", "hall-true-stereo.flac", "wav", {"wet": -12, "dry": 0, "predelay": 0.03},
     ["--wet", "-12", "--dry", "0", "--predelay", "0.03"]),
    ("drums.flac", "studio.flac", "wav", {"normalize": "loudness", "trim": -60, "encoding": "s24"},
     ["--normalize", "loudness", "--trim", "-60", "--encoding", "s24"]),
    ("speech.flac", "plate.flac", "flac", {"compression": 8}, ["--compression", "8"]),
    ("drums.flac", "plate.flac", "wav", {"mode": "same", "encoding": "float", "reverse": True, "fade": 0.1},
     ["--mode", "same", "--encoding", "float", "--reverse", "--fade", "0.1"]),
    ("speech.flac", "cathedral.flac", "wav", {"tail": "auto", "dither": True, "ir_length": 0.7, "minimum_phase": True},
     ["--tail", "auto", "--dither", "tpdf", "--ir-length", "0.7", "--minimum-phase"]),
]


@pytest.mark.parametrize("sample, response, kind, keywords, options", JOBS)
def test_convolve_file_writes_the_bytes_of_the_command(
    tmp_path, command, samples, impulses, sample, response, kind, keywords, options
):
    mine, theirs = tmp_path / f"python.{kind}", tmp_path / f"command.{kind}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = gpuconv.convolve_file(samples / sample, impulses / response, mine, **keywords)
    run(command, samples / sample, impulses / response, theirs, *options)
    assert mine.read_bytes() == theirs.read_bytes()
    assert report["files"]["output"] == str(mine)


def test_an_output_that_the_response_is_read_from_needs_force(tmp_path, samples, impulses):
    files = {name: tmp_path / name for name in ("response.wav", "link.wav", "series.wav", "one.matrix", "result.wav")}
    gpuconv.convolve_file(impulses / "plate.flac", impulses / "plate.flac", files["response.wav"])
    files["link.wav"].symlink_to("response.wav")
    files["series.wav"].write_bytes(files["response.wav"].read_bytes())
    files["one.matrix"].write_text("1 1 response.wav\n")
    kept, source = files["response.wav"].read_bytes(), samples / "drums.flac"
    for response, output in [("response.wav", "response.wav"), ("response.wav", "link.wav"), ("response.wav", "series.wav"),
                             ("one.matrix", "response.wav"), ("one.matrix", "one.matrix")]:
        with pytest.raises(ValueError, match="the response is read from this file, so it is not replaced"):
            gpuconv.convolve_file(source, files[response], files[output], format="wav", series=[files["series.wav"]])
    gpuconv.convolve_file(source, files["response.wav"], files["result.wav"])
    with pytest.raises(ValueError, match="is a result with the input"):
        gpuconv.convolve_file(source, files["result.wav"], files["response.wav"])
    assert files["response.wav"].read_bytes() == files["series.wav"].read_bytes() == kept
    gpuconv.convolve_file(source, files["response.wav"], files["response.wav"], force=True)
    assert files["response.wav"].read_bytes() == files["result.wav"].read_bytes()


@pytest.mark.parametrize("kind", ["mp3", "ogg"])
def test_compressed_files_are_written_and_read(tmp_path, samples, impulses, kind):
    files = [tmp_path / name for name in ("exact.wav", f"compressed.{kind}")]
    for file in files:
        gpuconv.convolve_file(samples / "strings.flac", impulses / "hall.flac", file)
    exact, compressed = (gpuconv.read(file).samples[0] for file in files)
    assert 0 <= len(compressed) - len(exact) < 2500
    part = exact[40000:60000]
    error = [part - compressed[40000 + shift : 60000 + shift] for shift in range(2500)]
    assert min(map(np.linalg.norm, error)) < 0.1 * np.linalg.norm(part)


@pytest.mark.parametrize("sample, response", [("speech.flac", "hall.flac"), ("strings.flac", "hall-true-stereo.flac"),
                                              ("drums.flac", "studio.flac")])
def test_arrays_give_the_samples_of_the_command(tmp_path, command, samples, impulses, sample, response):
    x, rate = gpuconv.read(samples / sample)
    hall = gpuconv.prepare_ir(impulses / response, inputs=len(x), rate=rate, normalize="energy", predelay=0.01)
    gpuconv.write(tmp_path / "python.wav", gpuconv.Convolver(hall)(x), rate)
    run(command, samples / sample, impulses / response, tmp_path / "command.wav", "--normalize", "energy", "--predelay",
        "0.01", "--encoding", "float")
    mine, theirs = gpuconv.read(tmp_path / "python.wav"), gpuconv.read(tmp_path / "command.wav")
    assert mine.rate == theirs.rate
    assert np.array_equal(mine.samples, theirs.samples)


def test_a_mono_array_gives_the_samples_of_the_command(tmp_path, command, samples, impulses):
    x, rate = gpuconv.read(samples / "speech.flac")
    hall = gpuconv.prepare_ir(impulses / "small-room.flac", inputs=1, rate=rate)
    run(command, samples / "speech.flac", impulses / "small-room.flac", tmp_path / "out.wav", "--encoding", "float")
    want = gpuconv.read(tmp_path / "out.wav").samples
    if hall.lead == 0 and len(want) == 1:
        assert np.array_equal(gpuconv.convolve(x, hall.taps()), want)
    else:
        assert_close(np.stack([gpuconv.convolve(x[0], taps) for taps in hall.numpy()]), want.astype(float))


def test_batch_writes_the_bytes_of_the_command(tmp_path, command, samples, impulses):
    seen = []
    patterns = {"inputs": str(samples / "*.flac"), "irs": str(impulses / "*.flac")}
    result = gpuconv.batch(out=tmp_path / "mine", **patterns, seed=7, progress=lambda done, total: seen.append((done, total)))
    run(command, "batch", "--inputs", patterns["inputs"], "--irs", patterns["irs"], "--seed", "7", "--out", tmp_path / "theirs")
    names = sorted(path.name for path in (tmp_path / "theirs").iterdir())
    assert sorted(path.name for path in (tmp_path / "mine").iterdir()) == names
    for name in names:
        if name != "results.jsonl":
            assert (tmp_path / "mine" / name).read_bytes() == (tmp_path / "theirs" / name).read_bytes()
    assert result.done == result.total == len(names) - 2 and result.failed == 0
    assert seen[-1] == (result.total, result.total)
    lines = [json.loads(line) for line in open(result.results)]
    assert {line["status"] for line in lines} == {"done"}
    again = gpuconv.batch(tmp_path / "mine" / "manifest.csv", out=tmp_path / "mine", resume=True)
    assert (again.done, again.skipped) == (0, result.total)


def test_an_exception_in_a_callback_ends_the_job(tmp_path, samples, impulses):
    def fail(*_):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        gpuconv.convolve_file(samples / "strings.flac", impulses / "cathedral.flac", tmp_path / "out.wav", progress=fail)
    assert not (tmp_path / "out.wav").exists()


def test_read_and_write(tmp_path, rng):
    x = rng.uniform(-1, 1, (3, 70001)).astype(np.float32)
    assert gpuconv.write(tmp_path / "x.wav", x, 44100) == 0
    back = gpuconv.read(tmp_path / "x.wav")
    assert back.rate == 44100 and np.array_equal(back.samples, x)
    part = gpuconv.read(tmp_path / "x.wav", start=65000, frames=5000).samples
    assert np.array_equal(part, x[:, 65000:70000])
    with pytest.raises(ValueError, match="5000 frames from 70000 on are not within its 70001 frames"):
        gpuconv.read(tmp_path / "x.wav", start=70000, frames=5000)
    with pytest.raises(ValueError, match="start 70001 is not within its 70001 frames"):
        gpuconv.read(tmp_path / "x.wav", start=70001)
    gpuconv.write(tmp_path / "x.flac", x.T[:, 0], 8000, encoding="s16")
    assert np.abs(gpuconv.read(tmp_path / "x.flac").samples - x[:1]).max() <= 0.51 / 32768
    with pytest.warns(UserWarning, match="samples clipped; a gain of -6.0 dB avoids it"):
        assert gpuconv.write(tmp_path / "loud.wav", np.array([0.5, 2.0, -2.0], np.float32), 8000, encoding="s16") == 2


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda d: gpuconv.read(d / "missing.wav"), FileNotFoundError, "missing.wav"),
        (lambda d: gpuconv.read(None), TypeError, "path=None: use the name of a file"),
        (lambda d: gpuconv.read(d / "missing.wav", start=1.5), TypeError, "start=1.5: use a whole number"),
        (lambda d: gpuconv.write(d / "x.wav", np.zeros((4000, 2), np.float32), 8000), ValueError, "such as samples.T"),
        (lambda d: gpuconv.write(d / "x.wav", np.zeros(3, np.float32), "8k"), TypeError, "rate='8k'"),
        (lambda d: gpuconv.convolve_file("a", "b", "c", gain="x"), TypeError, "gain='x': use a number"),
        (lambda d: gpuconv.prepare_ir(d / "x.wav", inputs=1.5, rate=8000), TypeError, "inputs=1.5: use a whole number"),
        (lambda d: gpuconv.acoustics(np.ones(4800, np.float32), 48000, bands="all"), ValueError, "bands='all'"),
        (lambda d: gpuconv.acoustics(np.ones(4800, np.float32), 48000, lateral=1), ValueError, "lateral=1: the response has"),
        (lambda d: gpuconv.acoustics(np.ones(4800, np.float32), 48000, noise_levels=[1, 2]), ValueError, "seven octaves"),
        (lambda d: gpuconv.write(d / "x.wav", np.zeros((2, 0), np.float32), 8000), ValueError, r"shape \(2, 0\)"),
        (lambda d: gpuconv.write(d / "x.wav", np.zeros(3), 8000), TypeError, "float64"),
        (lambda d: gpuconv.write(d / "x.xyz", np.zeros(3, np.float32), 8000), ValueError, "x.xyz: .* or name the format with format$"),
        (lambda d: gpuconv.write(d / "x.wav", np.zeros(3, np.float32), 8000.5), ValueError, "rate=8000.5"),
        (lambda d: gpuconv.prepare_ir(d / "x.wav", inputs=1, rate=8000, room=2), TypeError, "no step 'room'"),
        (lambda d: gpuconv.prepare_ir(d / "x.wav", inputs=1, rate=8000, trim=3), ValueError, "trim: must be -300 to 0 dB, not '3.0'"),
        (lambda d: gpuconv.prepare_ir(d / "x.wav", inputs=1, rate=8000, fade="1"), TypeError, "fade='1': use a number"),
        (lambda d: gpuconv.convolve_file("a", "b", "c", mode="causal"), ValueError, "mode='causal'"),
        (lambda d: gpuconv.convolve_file("a", "b", "c", tail="long"), ValueError, "tail: must be all, seconds"),
        (lambda d: gpuconv.acoustics(np.ones(5, np.float32)), TypeError, "needs its rate"),
        (lambda d: gpuconv.acoustics(np.ones(5, np.float32), 48000, band=40000), ValueError, "band=40000"),
    ],
)
def test_bad_files_say_what_fits(tmp_path, call, kind, text):
    with pytest.raises(kind, match=text):
        call(tmp_path)


def test_acoustics_are_those_of_the_command(command, impulses):
    path = impulses / "studio.flac"
    printed = subprocess.run([command, "ir", "info", str(path), "--report", "json"], check=True, capture_output=True).stdout
    rows = json.loads(printed)["acoustics"]
    for channel, figures in enumerate(gpuconv.acoustics(path)):
        row = next(row for row in rows if row.get("label", row.get("name")) == f"channel {channel + 1}")
        assert row["T30 s"] == pytest.approx(figures.t30, rel=1e-6)
        assert row["C80 dB"] == pytest.approx(figures.c80, rel=1e-6)
    octave = gpuconv.acoustics(path, band=1000)
    assert octave[0].t30 == pytest.approx(gpuconv.acoustics(gpuconv.load_ir(path), band=1000)[0].t30)


def test_a_response_is_edited(rng):
    taps = rng.standard_normal((2, 400)).astype(np.float32) * np.exp(-np.arange(400) / 60).astype(np.float32)
    ir = gpuconv.ImpulseResponse(taps, 48000)
    assert np.array_equal(ir.numpy(), taps) and np.array_equal(np.asarray(ir), taps)
    assert ir.cut(10, 100).frames == 100
    assert ir.reverse().history == "reversed"
    assert np.array_equal(ir.reverse().numpy(), taps[:, ::-1])
    assert ir.delay(7).onset() >= 7
    assert np.allclose(ir.gain(20).numpy(), 10 * taps, rtol=1e-6)
    assert np.allclose(np.abs(ir.normalize("peak").numpy()).max(), 1)
    assert np.isclose(ir.peak()[1], np.abs(taps).max())
    assert ir.resample(24000).rate == 24000
    assert ir.series(ir).frames == 799
    assert ir.stretch(2).frames > 700
    assert ir.fade(0, 50).trim(-20).frames < 400
    assert ir.minimum_phase().align("peak").lead >= 0
    stereo = ir.route(2)
    assert (stereo.inputs, stereo.outputs) == (2, 2) and stereo.taps(0, 1) is None
    assert stereo.mix(0, -6).numpy().shape == (2, 2, 400)
    with pytest.raises(ValueError, match="3 channels of response do not fit 2"):
        gpuconv.ImpulseResponse(np.ones((3, 5), np.float32), 8000).route(2)
    with pytest.raises(ValueError, match="not finite at frame 0"):
        gpuconv.ImpulseResponse(taps * np.nan, 48000)
    assert repr(ir) == "<gpuconv.ImpulseResponse 1 to 2, 400 frames, 0.00833 s at 48000 Hz>"


def test_a_routed_response_convolves_channels(rng):
    taps = rng.standard_normal((4, 300)).astype(np.float32)
    x = rng.standard_normal((3, 2, 2000)).astype(np.float32)
    y = gpuconv.Convolver(gpuconv.ImpulseResponse(taps, 48000))(x)
    assert y.shape == (3, 2, 2299)
    for out in range(2):
        assert_close(y[:, out], oracle(x[:, 0], taps[out]) + oracle(x[:, 1], taps[2 + out]))
    mono = gpuconv.Convolver(gpuconv.ImpulseResponse(taps[0], 48000))
    for mode in ("full", "same", "valid", "causal"):
        assert_close(mono(x[0, 0], mode), oracle(x[0, 0], taps[0], mode))
    assert_close(mono(x[0, :1].T, axis=0).T, oracle(x[0, :1], taps[0]))


def test_the_progress_bar_needs_no_tqdm(tmp_path, samples, impulses):
    text = (
        "import sys; sys.modules['tqdm'] = sys.modules['tqdm.auto'] = None; sys.stderr.isatty = lambda: True; import gpuconv;"
        f"gpuconv.convolve_file({str(samples / 'click.flac')!r}, {str(impulses / 'small-room.flac')!r}, "
        f"{str(tmp_path / 'o.wav')!r}, progress=True)"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", text], check=True)


@pytest.mark.parametrize("steps, options", [
    ({"direction": (30, 0)}, ["--direction", "30,0"]),
    ({"direction": "-100,10"}, ["--direction", "-100,10"]),
    ({"layout": "5.1"}, ["--layout", "5.1"]),
])
def test_directions_of_a_sofa_file(tmp_path, command, rng, steps, options):
    path, channels = SOURCE / "tests/sofa/head.sofa", 6 if "layout" in steps else 1
    x = rng.standard_normal((channels, 3000)).astype(np.float32)
    gpuconv.write(tmp_path / "x.wav", x, 48000)
    run(command, tmp_path / "x.wav", path, tmp_path / "theirs.wav", *options)
    head = gpuconv.prepare_ir(path, inputs=channels, rate=48000, **steps)
    assert (head.inputs, head.outputs) == (channels, 2)
    gpuconv.convolve_file(tmp_path / "x.wav", path, tmp_path / "mine.wav", **steps)
    assert (tmp_path / "mine.wav").read_bytes() == (tmp_path / "theirs.wav").read_bytes()
    turned = gpuconv.prepare_ir(path, inputs=channels, rate=48000, **steps, yaw=60)
    assert not np.array_equal(turned.numpy(), head.numpy())
    with pytest.raises(ValueError, match="use prepare_ir"):
        gpuconv.load_ir(path)


def test_a_pipe_or_a_device_is_no_response(tmp_path, samples):
    os.mkfifo(tmp_path / "pipe.wav")
    for path in (tmp_path / "pipe.wav", "/dev/zero"):
        with pytest.raises(OSError, match="is a pipe or a device"):
            gpuconv.load_ir(path)
        with pytest.raises(OSError, match="is a pipe or a device"):
            gpuconv.convolve_file(samples / "click.flac", path, tmp_path / "out.wav")


def test_the_channels_of_a_mono_file_are_those_of_the_command(tmp_path, command, samples, impulses):
    gpuconv.convolve_file(samples / "speech.flac", impulses / "hall-true-stereo.flac", tmp_path / "mine.wav")
    run(command, samples / "speech.flac", impulses / "hall-true-stereo.flac", tmp_path / "theirs.wav")
    assert (tmp_path / "mine.wav").read_bytes() == (tmp_path / "theirs.wav").read_bytes()


def test_a_response_is_pickled(rng):
    taps = rng.standard_normal((2, 300)).astype(np.float32)
    plain = gpuconv.ImpulseResponse(taps, 48000).align("peak")
    routed = gpuconv.ImpulseResponse.matrix({(0, 1): taps[0], (2, 0): taps[1, :50]}, 44100)
    for ir in (plain, routed, plain.route(2), routed.reverse()):
        twin = pickle.loads(pickle.dumps(ir))
        assert np.array_equal(twin.numpy(), ir.numpy())
        assert (twin.rate, twin.lead, twin.history, twin.routed, twin.routes) == (ir.rate, ir.lead, ir.history, ir.routed, ir.routes)
    x = rng.standard_normal((2, 500)).astype(np.float32)
    convolver = gpuconv.Convolver(plain, algorithm="direct", threads=1)
    assert np.array_equal(pickle.loads(pickle.dumps(convolver))(x), convolver(x))
    assert convolver.plan(500, 2).algorithm == "direct"
    assert gpuconv.Convolver(plain, backend="cpu").plan(48000).reason


def test_figures_by_band_and_of_two_ears(command, impulses):
    path = impulses / "studio.flac"
    printed = subprocess.run([command, "ir", "info", str(path), "--report", "json", "--reference", "-10", "--noise-levels", "40"],
                             check=True, capture_output=True).stdout
    report = json.loads(printed)
    rows = gpuconv.acoustics(path, bands="octave", reference=-10, noise_levels=40)
    assert [row.band for row in rows[:3]] == [0, 63, 125] and {row.channel for row in rows} == {0, 1}
    assert len(rows) == len(report["acoustics"])
    for mine, theirs in zip(rows, report["acoustics"]):
        pairs = {"T30 s": mine.t30, "EDT s": mine.edt, "C50 dB": mine.c50, "INR dB": mine.inr, "G dB": mine.strength}
        for name, value in pairs.items():
            if theirs.get(name) is not None:
                assert theirs[name] == pytest.approx(value, rel=1e-6), name
    assert report["speech"][0]["STI"] == pytest.approx(rows[0].sti, rel=1e-6)
    assert 0 <= rows[0].iacc_late <= 1
    assert len(gpuconv.acoustics(impulses / "small-room.flac", bands="third-octave")) > 20


def test_matrices_are_checked():
    good = np.ones(4, np.float32)
    for routes, text in (({}, "at least one"), (good, r"routes of shape \(4,\)"), ({(0, 0): good[:0]}, "at least one frame")):
        with pytest.raises(ValueError, match=text):
            gpuconv.ImpulseResponse.matrix(routes, 48000)
    with pytest.raises(IndexError, match=r"route \(3, 0\): the response has 1 inputs and 1 outputs"):
        gpuconv.ImpulseResponse(good, 48000).taps(3, 0)
    with pytest.raises(ValueError, match=r"use \(channels, frames\), such as taps.T"):
        gpuconv.ImpulseResponse(np.ones((4000, 2), np.float32), 48000)


def test_the_progress_bar_of_a_notebook(tmp_path, samples, impulses, monkeypatch):
    shown = []

    class Bar:
        n, total = 0, None

        def __init__(self, **keywords):
            shown.append(keywords)

        def update(self, more):
            self.n += more
            shown.append((self.n, self.total))

        def close(self):
            shown.append("closed")

    for name, module in (("ipykernel", object()), ("tqdm", object()), ("tqdm.auto", types.SimpleNamespace(tqdm=Bar))):
        monkeypatch.setitem(sys.modules, name, module)
    gpuconv.batch(inputs=str(samples / "click.flac"), irs=str(impulses / "small-room.flac"), out=tmp_path)
    assert shown[0] == {"unit": " files", "unit_scale": False} and shown[-2:] == [(1, 1), "closed"]


def test_names_of_files_may_be_any_bytes(tmp_path, monkeypatch, rng):
    monkeypatch.chdir(tmp_path)
    name, out, folder = (os.fsdecode(text) for text in (b"\xffr\xe9.wav", b"\xfe.wav", b"wet\xfe"))
    x = rng.uniform(-1, 1, 3000).astype(np.float32)
    with pytest.raises(FileNotFoundError, match=r"\\xffr\\xe9.wav: " + os.strerror(errno.ENOENT)):
        gpuconv.read(name)
    gpuconv.write(name, x, 48000)
    assert os.listdir(b".") == [os.fsencode(name)]
    for path in (name, os.fsencode(name), pathlib.Path(name)):
        assert np.array_equal(gpuconv.read(path).samples[0], x)
    assert np.array_equal(gpuconv.load_ir(name).taps(), x)
    for series in ([name], name, os.fsencode(name)):
        assert gpuconv.prepare_ir(name, inputs=1, rate=48000, series=series).frames == 5999
    assert len(gpuconv.acoustics(name, reference=name)) == 1
    notes = []
    report = gpuconv.convolve_file(name, name, out, encoding="s16", note=notes.append)
    assert [report["files"][key] for key in ("input", "response", "output")] == [name, name, out]
    assert any(note.startswith("\\xfe.wav: ") for note in notes)
    result = gpuconv.batch(inputs=os.fsdecode(b"\xff*"), irs=[name], series=[name], out=folder)
    assert result.done == 1 and os.path.exists(result.results) and os.path.exists(os.path.join(folder, name))
    with pytest.raises(ValueError, match="no name of a file"):
        gpuconv.read("\ud800.wav")


def test_a_file_that_is_cut_off_is_refused(tmp_path):
    gpuconv.write(tmp_path / "a.wav", np.zeros(1000, np.float32), 16000)
    (tmp_path / "cut.wav").write_bytes((tmp_path / "a.wav").read_bytes()[:2000])
    with pytest.raises(Exception, match="damaged or cut off"):
        gpuconv.read(tmp_path / "cut.wav")
    with pytest.raises(Exception, match="damaged or cut off"):
        gpuconv.convolve_file(tmp_path / "a.wav", tmp_path / "cut.wav", tmp_path / "out.wav")


def test_every_setting_of_the_library_is_a_keyword():
    """A line that the table of settings gets is a keyword of these functions, too, under the same name."""
    settings = {name for name, _, _ in gpuconv._core.settings()}
    prepared, batched = set(gpuconv.Preparation.__annotations__), set(gpuconv.BatchOptions.__annotations__)
    own = set(inspect.signature(gpuconv.convolve_file).parameters)
    assert prepared <= settings
    assert settings <= prepared | own | batched
    assert batched - settings == {"preset", "length", "offset", "input_length", "noise_offset", "snr"}


def test_responses_of_arrays_and_raw_samples_have_the_rate_that_is_told(tmp_path):
    x = np.float32([[1, 2, 3], [0.5, 0, -1]])
    for array in (x, np.asfortranarray(x), x.T, x.astype(np.float64)):
        np.save(tmp_path / "x.npy", array)
        assert np.array_equal(gpuconv.load_ir(tmp_path / "x.npy", rate=32000).numpy(), x)
    with pytest.raises(ValueError, match="x.npy: states no sampling rate"):
        gpuconv.load_ir(tmp_path / "x.npy")
    made = gpuconv.prepare_ir(tmp_path / "x.npy", inputs=1, rate=32000, ir_rate=32000)
    assert np.array_equal(made.taps(0, 1), x[1]) and made.rate == 32000
    x[0].tofile(tmp_path / "x.f32")
    assert np.array_equal(gpuconv.load_ir(tmp_path / "x.f32", raw="8000,1,float").taps(), x[0])
    (tmp_path / "m.txt").write_text("1 1 dirac\n")
    assert gpuconv.load_ir(tmp_path / "m.txt").routed
