"""What objects say of themselves, and what notebooks show: shapes and plan, drawings, players."""

import base64
import io
import re
import sys
import wave

import gpuconv
import numpy as np
import pytest

RATE = 8000


@pytest.fixture
def response():
    taps = np.zeros((2, 1600), np.float32)
    taps[0, 0], taps[1, 80] = 0.5, -0.25
    return gpuconv.ImpulseResponse(taps, RATE)


def heard(page):
    """Returns the samples, (frames, channels), and the rate of the player in a page."""
    (data,) = re.findall(r'<audio controls [^>]*src="data:audio/wav;base64,([^"]*)"', page)
    with wave.open(io.BytesIO(base64.b64decode(data))) as file:
        assert file.getsampwidth() == 2
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, file.getnchannels()), file.getframerate()


def test_objects_say_shapes_and_plan(response, tmp_path):
    assert repr(response) == "<gpuconv.ImpulseResponse 1 to 2, 1600 frames, 0.2 s at 8000 Hz>"
    convolver = gpuconv.Convolver(response)
    assert repr(convolver) == "<gpuconv.Convolver of ImpulseResponse 1 to 2, 1600 frames, 0.2 s at 8000 Hz: plan(frames) tells how>"
    plan = convolver.plan(100000)
    assert f": {plan.algorithm} on {plan.device}>" in repr(convolver)
    stream = gpuconv.StreamingConvolver(response, channels=2)
    assert repr(stream) == f"<gpuconv.StreamingConvolver 2 to 2, 1600 frames, 0.2 s at 8000 Hz: {stream.plan}>"
    gpuconv.write(tmp_path / "x.wav", np.zeros((3, 4000), np.float32), RATE)
    assert repr(gpuconv.read(tmp_path / "x.wav")) == "<gpuconv.Audio 3 x 4000 frames, 0.5 s at 8000 Hz>"


def test_a_response_is_heard(response):
    samples, rate = heard(response._repr_html_())
    want = np.zeros((1600, 2))
    want[0, 0], want[80, 1] = 1, -0.5
    assert rate == RATE and np.abs(samples / 32767 - want * 10 ** (-1 / 20)).max() < 1e-4
    silent, _ = heard(gpuconv.ImpulseResponse(np.zeros(10, np.float32), RATE)._repr_html_())
    assert not silent.any()


def test_a_sound_is_heard(tmp_path):
    gpuconv.write(tmp_path / "x.wav", np.ones((5, 40 * RATE), np.float32), RATE)
    samples, _ = heard(gpuconv.read(tmp_path / "x.wav")._repr_html_())
    assert samples.shape == (30 * RATE, 2)  # two channels, half a minute


def test_a_response_is_drawn(response):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    time, frequency = response.plot().axes
    for axes, value in ((time, (0, -6.02)), (frequency, (-6.02, -12.04))):
        assert [line.get_ydata().max() for line in axes.lines] == pytest.approx(value, abs=0.01)
    assert time.lines[1].get_xdata()[time.lines[1].get_ydata().argmax()] == pytest.approx(0.01, abs=1e-3)
    assert response._repr_png_().startswith(b"\x89PNG") and "<img" in response._repr_html_()
    many = gpuconv.ImpulseResponse.matrix(np.ones((3, 4, 5), np.float32), RATE).plot()
    assert len(many.axes[0].lines) == 8 and "8 of 12 routes" in many.get_suptitle()
    gpuconv.ImpulseResponse(np.zeros(1, np.float32), 1)._repr_png_()


def test_without_matplotlib_a_response_is_heard_only(response, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert response._repr_png_() is None and "<img" not in response._repr_html_()
    assert heard(response._repr_html_())[1] == RATE
