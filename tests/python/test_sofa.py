"""Open SOFA sets: the responses of the command, directions in any shape, threads, and what is refused."""

import pickle
import subprocess
import warnings
from concurrent.futures import ThreadPoolExecutor

import gpuconv
import numpy as np
import pytest
from conftest import SOURCE, assert_close

HEAD = SOURCE / "tests/sofa/head.sofa"


def test_a_set_gives_what_prepare_ir_reads():
    head = gpuconv.SofaSet(HEAD)
    assert (len(head), head.receivers, head.rate, head.title) == (47, 2, 48000, "Spherical head")
    for how in ("nearest", "triangle"):
        opened = head.prepare(inputs=6, layout="5.1", yaw=13, interpolate=how)
        read = gpuconv.prepare_ir(HEAD, inputs=6, rate=48000, layout="5.1", yaw=13, interpolate=how)
        assert np.array_equal(opened.numpy(), read.numpy()) and opened.history == read.history
    assert ("interpolated" if how == "triangle" else "nearest") in opened.history


def test_measured_directions_give_their_own_responses():
    head = gpuconv.SofaSet(HEAD)
    responses = head.responses(head.directions)
    assert responses.shape == (47, 2, head.frames)
    for number, direction in enumerate(head.directions):
        own = gpuconv.prepare_ir(HEAD, inputs=1, rate=48000, direction=direction).numpy()
        assert np.array_equal(responses[number][:, head.lead : head.lead + own.shape[-1]], own)
        assert head.nearest(direction) == (number, pytest.approx(0, abs=1e-4))


def test_a_direction_between_two_lies_between_them():
    head = gpuconv.SofaSet(HEAD)
    around = head.responses([(azimuth, 0) for azimuth in range(0, 31, 5)])
    energy = np.square(around.astype(np.float64)).sum(-1)
    assert (np.diff(energy[:, 0]) > 0).all()  # the left ear comes nearer
    weights = np.linspace(0, 1, 7)[:, None]
    assert_close(energy, (1 - weights) * energy[0] + weights * energy[-1], -40)


def test_directions_have_any_shape():
    head = gpuconv.SofaSet(HEAD, 44100)
    grid = np.stack(np.meshgrid([0.0, 40, 200], [-20.0, 10], indexing="ij"), -1)
    all_of_them = head.responses(grid)
    assert all_of_them.shape == (3, 2, 2, head.frames) and head.rate == 44100
    assert np.array_equal(head.responses(grid[2, 1]), all_of_them[2, 1])
    assert head.responses(np.empty((0, 2))).shape == (0, 2, head.frames)
    far = head.responses((30, 0, 6), by_distance=True)  # measured at 1.5 m
    assert_close(far, head.responses((30, 0)).astype(np.float64) / 4)


def test_threads_share_a_set():
    directions = np.random.default_rng(2).uniform([-180, -90], [180, 90], (200, 2))
    alone, head = gpuconv.SofaSet(HEAD).responses(directions), gpuconv.SofaSet(HEAD)
    with ThreadPoolExecutor(4) as threads:
        for made in threads.map(head.responses, [directions] * 8):
            assert np.array_equal(made, alone)


def test_a_set_is_pickled_by_its_name():
    head = gpuconv.SofaSet(HEAD, 32000)
    again = pickle.loads(pickle.dumps(head))
    assert repr(again) == repr(head) and np.array_equal(again.responses((7, 7)), head.responses((7, 7)))


@pytest.mark.parametrize("directions", [(30,), 3.0, [(0, 91)], (np.nan, 0), (0, 0, 0), (0, 0, -1), np.zeros((3, 4))])
def test_what_is_no_direction_is_refused(directions):
    with pytest.raises(ValueError, match="directions"):
        gpuconv.SofaSet(HEAD).responses(directions)


def test_what_cannot_be_opened_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="missing.sofa"):
        gpuconv.SofaSet(tmp_path / "missing.sofa")
    with pytest.raises(ValueError, match="rate"):
        gpuconv.SofaSet(HEAD, -1)
    with pytest.raises(ValueError, match="interpolate='linear': use 'auto', 'nearest', 'triangle'"):
        gpuconv.SofaSet(HEAD).responses((0, 0), interpolate="linear")


PATH = "seconds,azimuth,elevation,distance\n0.1,-20,0,1.5\n0.5,160,20,3\n0.8,200,0,1\n"
ROWS = ([0.1, 0.5, 0.8], [(-20, 0, 1.5), (160, 20, 3), (200, 0, 1)])


@pytest.mark.parametrize("keywords, options", [
    ({}, []),
    ({"doppler": True, "by_distance": True, "interval": 0.01}, ["--doppler", "--by-distance", "--interval", "0.01"]),
    ({"interpolate": "nearest"}, ["--interpolate", "nearest"]),
])
def test_a_path_gives_the_samples_of_the_command(tmp_path, command, rng, keywords, options):
    x = (0.2 * rng.standard_normal((1, 44100))).astype(np.float32)
    gpuconv.write(tmp_path / "x.wav", x, 44100)
    (tmp_path / "path.csv").write_text(PATH)
    subprocess.run([command, tmp_path / "x.wav", HEAD, tmp_path / "theirs.wav", "--path", tmp_path / "path.csv", *options],
                   check=True, capture_output=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gpuconv.convolve_file(tmp_path / "x.wav", HEAD, tmp_path / "mine.wav", path=tmp_path / "path.csv", **keywords)
    assert (tmp_path / "mine.wav").read_bytes() == (tmp_path / "theirs.wav").read_bytes()
    theirs = gpuconv.read(tmp_path / "theirs.wav").samples
    head = gpuconv.SofaSet(HEAD, 44100)
    for path in (ROWS, tmp_path / "path.csv"):
        assert np.array_equal(head.move(x, path, **keywords), theirs)


ROOM = "size=5x4x3 rt60=0.3 images=0.02 pattern=cardioid receiver=4,2,1.2,180,0 receiver=4.1,2,1.2"
WALK = ([0, 0.2, 0.4], [(1, 1, 1.5), (1.3, 1.2, 1.5), (1.3, 1.2, 1.5)])
BACK = ([0, 0.4], [(4, 2, 1.2), (3.7, 2.5, 1.3)])


@pytest.mark.parametrize("rate", [16000, 44100])
def test_a_walk_in_a_room_gives_the_samples_of_the_command(tmp_path, command, rng, rate):
    x = (0.2 * rng.standard_normal((1, rate // 2))).astype(np.float32)
    gpuconv.write(tmp_path / "x.wav", x, rate)
    names = []
    for name, (seconds, places) in {"walk": WALK, "back": BACK}.items():
        (tmp_path / name).write_text("".join(f"{at} {' '.join(map(str, row))}\n" for at, row in zip(seconds, places)))
        names += [tmp_path / name]
    subprocess.run([command, tmp_path / "x.wav", f"room:{ROOM}", tmp_path / "theirs.wav", "--path", names[0], "--receiver-path", names[1],
                    "--interval", "0.01"], check=True, capture_output=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gpuconv.convolve_file(tmp_path / "x.wav", f"room:{ROOM}", tmp_path / "mine.wav", path=names[0], receiver_path=names[1], interval=0.01)
    assert (tmp_path / "mine.wav").read_bytes() == (tmp_path / "theirs.wav").read_bytes()
    theirs = gpuconv.read(tmp_path / "theirs.wav").samples
    for walk, back in ((WALK, BACK), names):
        assert np.array_equal(gpuconv.move_in_room(x, rate, ROOM, walk, receiver_path=back, interval=0.01), theirs)


def test_what_does_not_fit_a_room_is_refused():
    x = np.zeros(100, np.float32)
    with pytest.raises(ValueError, match="x = 6 m at 1 s; use more than 0 and less than 5"):
        gpuconv.move_in_room(x, 16000, ROOM, ([0, 1], [(1, 1, 1), (6, 1, 1)]))
    with pytest.raises(ValueError, match="without a path, source=X,Y,Z is needed"):
        gpuconv.move_in_room(x, 16000, ROOM)
    with pytest.raises(ValueError, match="has no receiver"):
        gpuconv.move_in_room(x, 16000, "size=5x4x3 rt60=0.3", WALK)
    with pytest.raises(ValueError, match="path: times of shape"):
        gpuconv.move_in_room(x, 16000, ROOM, ([0], [(1, 1)]))


def test_a_turning_source_does_not_click():
    head, rate = gpuconv.SofaSet(HEAD), 48000
    x = np.sin(2 * np.pi * 1000 * np.arange(2 * rate) / rate).astype(np.float32)
    turned = head.move(x, ([0, 2], [(0, 0), (360, 0)]))[0, 4096 : 4096 + 65536].astype(np.float64)
    spectrum = np.abs(np.fft.rfft(turned * np.blackman(65536))) ** 2
    frequency = np.fft.rfftfreq(65536, 1 / rate)
    far = spectrum[np.abs(frequency - 1000) > 60].max() / spectrum.max()
    assert 10 * np.log10(far) < -70  # the turn itself is within 60 Hz; exchanges each 5 ms are multiples of 200 Hz


def test_channels_move_apart():
    head = gpuconv.SofaSet(HEAD)
    x = np.sin(np.arange(9600) * [[0.1], [0.37]]).astype(np.float32)
    rows = np.array([[(0, 0), (90, 0)], [(80, 30), (-90, 0)]], float)
    both = head.move(x, ([0, 0.2], rows))
    alone = [head.move(one, ([0, 0.2], rows[:, channel])) for channel, one in enumerate(x)]
    assert_close(both[:, :9600], alone[0][:, :9600].astype(np.float64) + alone[1][:, :9600], -60)


@pytest.mark.parametrize("channels, place", [(1, {"direction": (30, 10, 1.5)}), (6, {"layout": "5.1"}), (4, {"layout": "ambisonic"})])
def test_a_head_turns_as_in_the_command(tmp_path, command, channels, place):
    x = np.sin(np.arange(20000) * np.linspace(0.02, 0.3, channels)[:, np.newaxis]).astype(np.float32)
    gpuconv.write(tmp_path / "x.wav", x, 44100)
    rows = ([0, 0.4], [(0, 0, 0), (120, 10, -5)])
    (tmp_path / "head.csv").write_text("time,yaw,pitch,roll\n0,0\n0.4,120,10,-5\n")
    words = [f"--{name}={','.join(map(str, value)) if isinstance(value, tuple) else value}" for name, value in place.items()]
    subprocess.run([command, "x.wav", HEAD, "theirs.wav", "--head=head.csv", *words, "--encoding=float"], cwd=tmp_path, check=True, capture_output=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gpuconv.convolve_file(tmp_path / "x.wav", HEAD, tmp_path / "mine.wav", head=tmp_path / "head.csv", encoding="float", **place)
    theirs = gpuconv.read(tmp_path / "theirs.wav").samples
    assert np.array_equal(gpuconv.read(tmp_path / "mine.wav").samples, theirs)
    head = gpuconv.SofaSet(HEAD, 44100)
    for turns in (rows, tmp_path / "head.csv"):
        assert np.array_equal(head.move(x, head=turns, **place), theirs)
    assert not np.array_equal(head.move(x, **place), theirs)


@pytest.mark.parametrize("keywords, error, says", [
    ({}, TypeError, "one of path, direction and layout"),
    ({"direction": (0, 0), "layout": "mono"}, TypeError, "one of path"),
    ({"direction": (0, 0), "head": 3}, TypeError, "head: use the name"),
    ({"direction": (0, 0), "head": ([0], [(0, 0)])}, ValueError, "head: times of shape"),
    ({"direction": (0, 0), "head": ([1, 0], [(0, 0, 0)] * 2)}, ValueError, "row 2 of the head"),
    ({"layout": "5.1"}, ValueError, "6 directions for 1 channel"),
])
def test_what_is_no_head_is_refused(keywords, error, says):
    with pytest.raises(error, match=says):
        gpuconv.SofaSet(HEAD).move(np.ones(100, np.float32), **keywords)


@pytest.mark.parametrize("path, error, says", [
    (([0], [(0, 0, 0)]), ValueError, "row 1 of the path"),
    (([0, 1], [(0, 0)]), ValueError, "do not fit 1 channel"),
    (([0], np.zeros((1, 2, 3))), ValueError, "do not fit 1 channel"),
    (3, TypeError, "use the name of a file"),
    ("missing.csv", FileNotFoundError, "missing.csv"),
])
def test_what_is_no_path_is_refused(path, error, says):
    with pytest.raises(error, match=says):
        gpuconv.SofaSet(HEAD).move(np.ones(100, np.float32), path)


def decoded_magnitudes(head, **keywords):
    """Returns the magnitudes of the measurements and of first-order ambisonics decoded in their directions."""
    azimuth, elevation = np.radians(head.directions[:, :2]).T
    harmonics = [np.ones(len(head)), np.cos(elevation) * np.sin(azimuth), np.sin(elevation), np.cos(elevation) * np.cos(azimuth)]
    decoder = head.prepare(inputs=4, layout="ambisonic", **keywords)
    decoded = np.einsum("kd,krt->drt", harmonics, decoder.numpy().astype(np.float64))
    return np.abs(np.fft.rfft(head.responses(head.directions), 512)), np.abs(np.fft.rfft(decoded, 512)), decoder.history


def test_ambisonics_keep_the_magnitudes_above_the_aliasing_frequency():
    head = gpuconv.SofaSet(HEAD)
    frequency, errors = np.fft.rfftfreq(512, 1 / 48000), {}
    for decode in ("ls", "aligned", "magls"):
        want, got, history = decoded_magnitudes(head, decode=decode)
        assert {"ls": "least squares", "aligned": "time-aligned", "magls": "MagLS"}[decode] in history
        errors[decode] = [10 * np.log10(np.square(got - want)[..., band].sum() / np.square(want)[..., band].sum())
                          for band in (frequency < 400, (frequency > 2000) & (frequency < 16000))]
    assert max(low for low, _ in errors.values()) < -15
    assert errors["magls"][1] < errors["aligned"][1] - 6 and errors["aligned"][1] < errors["ls"][1] - 6
    assert np.array_equal(decoded_magnitudes(head)[1], decoded_magnitudes(head, decode="magls")[1])


@pytest.mark.parametrize("decode", ["ls", "aligned", "magls"])
def test_an_equalised_decoder_has_the_energy_of_the_set(decode):
    want, got, history = decoded_magnitudes(gpuconv.SofaSet(HEAD), decode=decode, diffuse_eq=True)
    assert "equalised to the diffuse field" in history
    decibels = 10 * np.log10(np.square(got).sum((0, 1)) / np.square(want).sum((0, 1)))[4:170]
    assert np.abs(decibels).max() < 3 and np.abs(decibels).mean() < 0.5


def test_ambisonics_of_other_conventions_sound_the_same_before_a_head_that_turns(rng):
    head = gpuconv.SofaSet(HEAD)
    x = rng.uniform(-1, 1, (4, 4800)).astype(np.float32)
    turns = (np.float64([0, 0.05]), np.float64([[0, 0, 0], [60, 10, 0]]))
    want = head.move(x, layout="ambisonic", head=turns)
    n3d = x * np.float32([1, 3**0.5, 3**0.5, 3**0.5])[:, None]
    fuma = x[[0, 3, 1, 2]] * np.float32([0.5**0.5, 1, 1, 1])[:, None]
    for name, other in (("acn-n3d", n3d), ("fuma", fuma)):
        got = head.move(other, layout="ambisonic", head=turns, ambisonics=name)
        assert np.abs(got - want).max() < 1e-5 * np.abs(want).max(), name
