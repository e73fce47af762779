"""RandomReverb, and responses of files in the modules: rates, channels, checkpoints, refusals."""

import copy
import os
import pickle

import gpuconv
import numpy as np
import pytest
from conftest import assert_close, oracle

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
import gpuconv.torch as gt  # noqa: E402


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(1)


def test_random_reverb():
    irs = [torch.randn(50), torch.randn(80), np.random.default_rng(0).standard_normal(30).astype(np.float32)]
    x = torch.randn(64, 2, 400)
    reverb = gt.RandomReverb(irs, p=0.5)
    y = reverb(x)
    assert y.shape == x.shape
    untouched = (y == x).flatten(1).all(1).sum()
    assert 10 < untouched < 54
    assert torch.equal(reverb.eval()(x), x)
    assert torch.equal(gt.RandomReverb(irs, p=0)(x), x)
    # With p = 1 each example is one of the responses, whose direct sound keeps its time.
    always = gt.RandomReverb(irs, p=1.0, normalize="peak")
    y = always(x[:6])
    candidates = [oracle(x[:6], ir / np.abs(ir).max(), "causal", int(np.abs(ir).argmax())) for ir in map(np.asarray, irs)]
    for i in range(6):
        assert min(np.abs(y[i].numpy() - c[i]).max() for c in candidates) < 1e-4
    torch.manual_seed(3)
    first = always(x)
    torch.manual_seed(3)
    assert torch.equal(always(x), first)
    assert always(x[0, 0]).shape == (400,)
    half = gt.RandomReverb(irs[:1], p=1.0, wet=(0.25, 0.25), align=False)
    taps = irs[0] / irs[0].square().sum().sqrt()
    assert_close(half(x), 0.75 * x.numpy() + 0.25 * oracle(x, taps, "causal"), bound=-100)
    channels = gt.RandomReverb([torch.randn(2, 40)], p=1.0)
    assert channels(x).shape == x.shape
    assert "3 responses of" in repr(reverb)


@pytest.mark.parametrize(
    "make, text",
    [
        (lambda: gt.RandomReverb([]), "at least one"),
        (lambda: gt.RandomReverb([torch.zeros(5)]), "response 0 is silent"),
        (lambda: gt.RandomReverb([torch.ones(5) * float("inf")]), "response 0 has NaN"),
        (lambda: gt.RandomReverb(torch.ones(5)), r"irs is one response; use a sequence of them: \[irs\]"),
        (lambda: gt.RandomReverb("hall.flac"), "irs is one response"),
        (lambda: gt.RandomReverb([torch.ones(5)], wet=(0.1, 0.2, 0.3)), r"wet=\(0.1, 0.2, 0.3\): use a share"),
        (lambda: gt.RandomReverb([torch.ones(5)], p=2), "p=2"),
        (lambda: gt.RandomReverb([torch.ones(5)], wet=(0.5, 0.2)), "wet="),
        (lambda: gt.RandomReverb([torch.ones(5)], normalize="loud"), "normalize='loud'"),
        (lambda: gt.RandomReverb([torch.ones(5), torch.ones(2, 5)]), "as many channels"),
        (lambda: gt.RandomReverb([torch.ones(2, 5)])(torch.ones(3, 4, 9)), r"use signals \(batch, 2, frames\), or .*channels='mix'.*channels=0"),
        (lambda: gt.RandomReverb([torch.ones(2, 5)])(torch.ones(3, 9)), r"use signals \(batch, 2, frames\), or .*channels='mix'.*channels=0"),
        (lambda: gt.RandomReverb([torch.ones(5)])(torch.ones(3, 4, 2, 9)), r"use \(batch, \[channels,\] frames\)"),
        (lambda: gt.RandomReverb([torch.ones(2, 5)], channels=2), "channels=2: a response has the channels 0 to 1"),
    ],
)
def test_random_reverb_says_what_fits(make, text):
    with pytest.raises(ValueError, match=text):
        make()


def test_modules_take_files_and_refuse_other_types(impulses):
    paths = [impulses / "studio.flac", str(impulses / "hall.flac")]
    reverb = gt.RandomReverb(paths, p=1.0, wet=[0.5, 1.0], rate=48000)
    assert reverb.bank.shape[:2] == (2, 2) and reverb(torch.randn(1, 2, 4000)).shape == (1, 2, 4000)
    assert gt.Convolution(paths[0], "causal", rate=48000)(torch.randn(2, 500)).shape == (2, 500)
    for call in (gt.RandomReverb([torch.ones(5)], p=1.0), gt.Convolution(torch.ones(5))):
        with pytest.raises(TypeError, match=r"x is ndarray; use a tensor: torch.from_numpy\(x\)"):
            call(np.ones((2, 50), np.float32))
        with pytest.raises(TypeError, match="x is None; use a tensor"):
            call(None)
    with pytest.raises(TypeError, match="response 1 has dtype float64"):
        gt.RandomReverb([np.ones(3, np.float32), np.ones(3)])
    with pytest.raises(TypeError, match="p='often': use a number"):
        gt.RandomReverb([torch.ones(5)], p="often")
    with pytest.raises(TypeError, match="channels='left': use a whole number"):
        gt.RandomReverb([torch.ones(2, 5)], channels="left")


def test_a_response_that_has_a_rate_needs_that_of_the_signals(impulses):
    path = impulses / "hall.flac"
    x = torch.randn(2, 2, 100)
    for make in (lambda ir, **rate: gt.RandomReverb([ir], **rate)(x), lambda ir, **rate: gt.Convolution(ir, **rate)):
        for ir in (path, str(path), os.fsencode(path), gpuconv.load_ir(path)):
            with pytest.raises(TypeError, match="ha(s|ve) a rate, 48000 Hz, .*rate=48000"):
                make(ir)
        with pytest.raises(ValueError, match="not to -1 Hz"):
            make(path, rate=-1)


def test_a_call_says_the_rate_of_its_signals(impulses):
    hall, taps, x = gpuconv.load_ir(impulses / "hall.flac"), torch.randn(2, 100), torch.randn(2, 2, 3000)
    reverb = gt.RandomReverb([hall, taps], p=1.0)
    assert reverb(x, sample_rate=48000).shape == x.shape and reverb(x[0, 0].expand(2, 2, -1), 48000.0).shape == (2, 2, 3000)
    with pytest.raises(ValueError, match="sample_rate=16000: the responses are at 48000 Hz; .*rate=16000"):
        reverb(x, sample_rate=16000)
    with pytest.raises(TypeError, match="the rates 16000, 48000 Hz"):
        gt.RandomReverb([hall, hall.resample(16000)])
    resampled = gt.RandomReverb([hall, hall.resample(32000)], p=1.0, rate=16000)
    assert resampled(x).shape == x.shape and resampled(x, sample_rate=16000).shape == x.shape
    with pytest.raises(ValueError, match="sample_rate=48000: the responses are at 16000 Hz"):
        resampled(x, sample_rate=48000)
    assert gt.RandomReverb([taps], p=1.0)(x, sample_rate=44100).shape == x.shape
    assert "2 responses of 2 channels of" in repr(reverb) and "at 48000 Hz" in repr(reverb)
    compiled = torch.compile(reverb, backend="aot_eager", fullgraph=True)
    assert compiled(x, sample_rate=48000).shape == x.shape


def test_files_are_resampled_to_the_rate_of_the_signals(impulses):
    """As the command does it: with the level, and the frames before time zero."""
    path, x = impulses / "hall.flac", torch.randn(1, 2, 6000)
    hall = gpuconv.load_ir(path).resample(16000)
    assert hall.lead > 0
    full = gpuconv.Convolver(hall)(x[0].numpy())
    for ir in (path, gpuconv.load_ir(path)):
        reverb = gt.RandomReverb([ir], p=1.0, rate=16000, normalize="none", align=False)
        assert_close(reverb(x)[0], full[:, :6000].astype(float), bound=-100)
        assert_close(gt.Convolution(ir, rate=16000)(x)[0], full.astype(float), bound=-100)
        assert_close(gt.Convolution(ir, "causal", rate=16000, delay=100)(x)[0], full[:, 100:6100].astype(float), bound=-100)
    assert gt.RandomReverb([path], rate=16000).bank.shape[-1] < 35000


def test_channels_of_responses_are_mixed_or_picked():
    stereo, mono, x = torch.randn(2, 50), torch.randn(40), torch.randn(3, 1, 200)
    options = {"p": 1.0, "normalize": "none", "align": False}
    for channels, taps in (("mix", stereo.mean(0)), (0, stereo[0]), (1, stereo[1])):
        want = oracle(x, taps, "causal")
        assert_close(gt.RandomReverb([stereo], channels=channels, **options)(x), want, bound=-100)
        assert_close(gt.RandomReverb(stereo[None], channels=channels, **options)(x[:, 0]), want[:, 0], bound=-100)
    assert gt.RandomReverb([stereo, mono], channels="mix", align=False).bank.shape == (2, 50)


def test_checkpoints_are_without_the_responses_and_may_have_others():
    x = torch.randn(2, 500)
    model = torch.nn.Sequential(gt.RandomReverb([torch.randn(50)] * 3, p=1.0), torch.nn.Linear(500, 4))
    assert list(model.state_dict()) == ["1.weight", "1.bias"]
    want = model(x)
    old = {**model.state_dict(), "0.bank": torch.randn(1000, 77)}  # of a version that kept them
    model.load_state_dict(old)
    assert "0.bank" in old and torch.equal(model(x).detach(), model(x).detach()) and model(x).shape == want.shape
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(twin[0].bank, model[0].bank)


def test_saved_rooms_come_back():
    x, options = torch.randn(4, 500), {"p": 1.0, "save_rooms": True}
    model = torch.nn.Sequential(gt.RandomReverb([torch.randn(50), torch.randn(90)], **options))
    twin = torch.nn.Sequential(gt.RandomReverb([torch.randn(7)], **options))
    assert sorted(model.state_dict()) == ["0.bank", "0.bank_delay"]
    twin.load_state_dict(model.state_dict())
    torch.manual_seed(5)
    want = model(x)
    torch.manual_seed(5)
    assert torch.equal(twin(x), want)
    gt.RandomReverb([torch.randn(7)]).load_state_dict(model[0].state_dict())  # not saved, not loaded


def test_a_response_of_one_channel_serves_all():
    reverb = gt.RandomReverb([torch.randn(1, 50), torch.randn(30)], p=1.0)
    assert reverb(torch.randn(4, 3, 200)).shape == (4, 3, 200)
