"""simulate_rooms and RandomRoom, on the CPU and on a GPU: shapes, values against a sum in double precision, graphs, and what
they refuse. The C tests check the rest."""

import pickle
from pathlib import Path

import gpuconv
import numpy as np
import pytest

try:
    import torch
    import gpuconv.torch as gt
except ImportError:
    torch = None
DEVICES = ["cpu"] + (["cuda"] if torch and torch.cuda.is_available() and gpuconv.built_with_cuda else [])
needs_torch = pytest.mark.skipif(torch is None, reason="PyTorch is not installed")
needs_gpu = pytest.mark.skipif("cuda" not in DEVICES, reason="there is no GPU")
HEAD = Path(__file__).resolve().parents[1] / "sofa/head.sofa"
SIZE, SOURCE, RECEIVER = (5.0, 4.0, 3.0), (1.2, 2.3, 1.5), (3.7, 1.1, 1.4)


def kernel(frames, at):
    x = np.arange(frames) - at
    return np.where(np.abs(x) < 24, np.sinc(x) * (1 + np.cos(np.pi * x / 24)) / 2, 0)


def test_the_direct_sound_and_the_first_reflections_are_those_of_the_formula():
    absorption = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    made = gpuconv.simulate_rooms(SIZE, SOURCE, RECEIVER, absorption=absorption[:, None], frames=600, images_order=1)
    assert made.shape == (1, 1, 1, 600) and made.dtype == np.float32
    images = [(np.array(SOURCE), 1.0)]
    for wall in range(6):
        image = np.array(SOURCE)
        image[wall // 2] = (2 * SIZE[wall // 2] if wall % 2 else 0) - image[wall // 2]
        images.append((image, np.sqrt(1 - absorption[wall])))
    want = np.zeros(600)
    for image, gain in images:
        d = np.linalg.norm(image - RECEIVER)
        want += gain / d * kernel(600, d / 343.2 * 16000)
    assert np.sqrt(np.sum((made[0, 0, 0] - want) ** 2) / np.sum(want**2)) <= 1e-4


def test_shapes_broadcast():
    rng = np.random.default_rng(1)
    receivers = rng.uniform(0.5, 2.4, (3, 4, 3))
    times = rng.uniform(0.2, 0.5, (3, 1))
    made = gpuconv.simulate_rooms(SIZE, [SOURCE, (2, 2, 2)], receivers, rt60=times, frames=1000, tail=True, images_level=10)
    assert made.shape == (3, 2, 4, 1000)
    assert np.isfinite(made).all() and made.any(axis=-1).all()
    one = gpuconv.simulate_rooms(SIZE, [SOURCE, (2, 2, 2)], receivers[0], rt60=times[0], frames=1000, tail=True, images_level=10, threads=1)
    np.testing.assert_array_equal(made[:1], one)
    octaves = [0.5, 0.4, 0.3, 0.3, 0.3, 0.2]
    full = gpuconv.simulate_rooms(SIZE, SOURCE, RECEIVER, rt60=octaves, air=True, ambisonic=2, receiver_direction=(90, 0))
    assert full.shape == (1, 1, 1, 9, 8000)
    same = gpuconv.simulate_rooms(SIZE, SOURCE, RECEIVER, rt60=octaves[:1] + octaves + octaves[-1:] * 2, air=True)
    np.testing.assert_allclose(full[..., 0, :], same, atol=1e-6)


def test_ears_hear_an_image_as_their_set_has_its_direction():
    ears = gpuconv.SofaSet(HEAD, 16000)
    azimuth, elevation, _ = ears.directions[len(ears) // 3]
    turn, up = np.radians([azimuth + 30, elevation])
    distance, at = 400 * 343.2 / 16000, np.array((15.0, 15.0, 15.0))
    source = at + distance * np.array((np.cos(up) * np.cos(turn), np.cos(up) * np.sin(turn), np.sin(up)))
    options = {"absorption": 1.0, "frames": 900, "receiver_direction": (30, 0), "ears": ears}
    made = gpuconv.simulate_rooms((30, 30, 30), source, at, **options)
    want = ears.responses((azimuth, elevation), interpolate="nearest").reshape(ears.receivers, -1) / distance
    assert made.shape == (1, 1, 1, ears.receivers, 900)
    begin = 400 - ears.lead
    np.testing.assert_allclose(made[0, 0, 0, :, begin : begin + want.shape[1]], want, atol=1e-3 * abs(want).max())
    if torch:
        np.testing.assert_array_equal(gpuconv.simulate_rooms((30, 30, 30), torch.tensor(source), at, **options).numpy(), made)
    with pytest.raises(ValueError, match="16000 Hz"):
        gpuconv.simulate_rooms((30, 30, 30), source, at, **{**options, "ears": gpuconv.SofaSet(HEAD)})
    with pytest.raises(ValueError, match="ambisonic 1"):
        gpuconv.simulate_rooms((30, 30, 30), source, at, ambisonic=1, **options)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"receiver": (9, 1, 1)}, "receiver"),
        ({"size": (5, 0, 3)}, "size"),
        ({"absorption": 1.5}, "absorption"),
        ({"absorption": np.nan}, "absorption"),
        ({"absorption": [0.1, 0.2]}, "octaves"),
        ({"rt60": 0.01}, "rt60"),
        ({"seed": [1, 2]}, "seed"),
        ({"frames": 0}, "frames"),
        ({"ambisonic": 5}, "ambisonic"),
        ({"formula": "fair"}, "formula"),
        ({"source": (1, 2)}, "source"),
        ({"source_omni": 2}, "omni"),
        ({"rate": np.inf}, "rate"),
        ({"absorption": None}, "missing"),
    ],
)
def test_impossible_rooms_are_refused(change, words):
    arguments = {"size": SIZE, "source": SOURCE, "receiver": RECEIVER, "absorption": 0.2} | change
    with pytest.raises(ValueError, match=words):
        gpuconv.simulate_rooms(**arguments)


# ---- Tensors -----------------------------------------------------------------------------------------------------------


def on(device, *arrays):
    return [torch.tensor(np.asarray(array), dtype=torch.float64, device=device) for array in arrays]


@needs_torch
@pytest.mark.parametrize("device", DEVICES)
def test_tensors_give_tensors_where_they_are(device):
    rng = np.random.default_rng(2)
    receivers, times = rng.uniform(0.5, 2.4, (3, 2, 3)), rng.uniform(0.2, 0.5, (3, 6))
    options = {"frames": 2000, "images_level": 20, "tail": True, "air": True, "source_omni": 0.5, "highpass": 50}
    want = gpuconv.simulate_rooms(SIZE, SOURCE, receivers, rt60=times, seed=np.arange(3), **options)
    at, decay, seeds = *on(device, receivers, times), torch.arange(3, device=device)
    made = gpuconv.simulate_rooms(SIZE, SOURCE, at, rt60=decay, seed=seeds, **options)
    assert made.shape == (3, 1, 2, 2000) and made.device.type == device
    assert np.sqrt(np.sum((made.cpu().numpy() - want) ** 2) / np.sum(want**2)) <= 1e-4
    one = gpuconv.simulate_rooms(SIZE, SOURCE, at, rt60=0.4, frames=1000, ambisonic=1)  # the same octaves
    assert one.shape == (3, 1, 2, 4, 1000)
    with pytest.raises(ValueError, match="receiver"):
        gpuconv.simulate_rooms(SIZE, SOURCE, on(device, [1.0])[0], rt60=0.4)
    with pytest.raises(ValueError, match="seed"):
        gpuconv.simulate_rooms(SIZE, SOURCE, at, rt60=0.4, seed=torch.arange(2, device=device))


@needs_torch
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("change", [{}, {"air": True, "tail": True, "images_level": 15}, {"origin": -100, "images_order": 2, "rate": 48000}])
def test_ears_hear_the_same_room_on_every_device(device, change):
    options = {"frames": 1000, "receiver_direction": (40, 10), "source_omni": 0.5, "rt60": [0.5, 0.4, 0.3, 0.3, 0.3, 0.2]} | change
    options["ears"] = gpuconv.SofaSet(HEAD, options.get("rate", 16000))
    want = gpuconv.simulate_rooms(SIZE, SOURCE, RECEIVER, **options)
    made = gpuconv.simulate_rooms(SIZE, SOURCE, on(device, RECEIVER)[0], **options)
    assert made.shape == (1, 1, 1, 2, 1000) and made.device.type == device
    assert np.sqrt(np.sum((made.cpu().numpy() - want) ** 2) / np.sum(want**2)) <= 1e-3


@needs_gpu
def test_a_graph_of_pytorch_simulates_the_rooms_that_the_tensors_then_have():
    size, source, receiver, other = on("cuda", SIZE, SOURCE, RECEIVER, (1.0, 1.0, 1.0))
    run = lambda: gpuconv.simulate_rooms(size, source, receiver, rt60=0.4, frames=1000, images_level=20, tail=True)
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        run()  # plans
    with torch.cuda.graph(graph, stream=stream):
        made = run()
    receiver.copy_(other)
    graph.replay()
    torch.testing.assert_close(made, run(), rtol=0, atol=0)


@needs_gpu
def test_arrays_of_cupy_give_the_same():
    cupy = pytest.importorskip("cupy")
    made = gpuconv.simulate_rooms(cupy.asarray(SIZE), SOURCE, RECEIVER, rt60=0.4, frames=1000)
    want = gpuconv.simulate_rooms(SIZE, SOURCE, RECEIVER, rt60=0.4, frames=1000)
    np.testing.assert_allclose(cupy.asnumpy(made), want, atol=1e-4 * np.abs(want).max())


# ---- RandomRoom --------------------------------------------------------------------------------------------------------


def room(**options):
    return gt.RandomRoom(16000, **{"rt60": (0.2, 0.4), "details": True} | options)


@needs_torch
@pytest.mark.parametrize("device", DEVICES)
def test_a_random_room_is_the_one_that_it_tells(device):
    torch.manual_seed(3)
    x = torch.randn(4, 3000, device=device)
    array = [[0.05, 0.0, 0.0], [-0.05, 0.0, 0.0]]
    y, early, drawn = room(microphones=array, early=0.01, images_level=0, normalize="none").to(device)(x)
    assert y.shape == early.shape == (4, 2, 3000) and y.device.type == device
    d = {name: value.cpu().double().numpy() for name, value in drawn.items()}
    h = gpuconv.simulate_rooms(d["size"], d["source"][:, None], d["microphones"], rt60=d["rt60"][:, None], frames=6400)[:, 0]
    want = gpuconv.convolve(x.cpu().numpy()[:, None], h, "causal")
    assert np.sqrt(np.sum((y.cpu().numpy() - want) ** 2) / np.sum(want**2)) <= 2e-4
    distance = np.linalg.norm(d["source"][:, None] - d["microphones"], axis=-1)
    assert (distance > 0.4).all() and (distance < 3.1).all()
    for name in ("source", "microphones"):
        at = d[name].reshape(4, -1, 3)
        assert (at > 0).all() and (at < d["size"][:, None]).all()
    h[np.arange(6400) > (distance * 16000 / 343.2 + 160)[..., None]] = 0
    target = gpuconv.convolve(x.cpu().numpy()[:, None], h, "causal")
    assert np.sqrt(np.sum((early.cpu().numpy() - target) ** 2) / np.sum(target**2)) <= 0.2  # but for the fade


@needs_torch
@pytest.mark.parametrize("device", DEVICES)
def test_a_random_head_hears_what_it_tells(device):
    torch.manual_seed(4)
    x = torch.randn(3, 2000, device=device)
    head = gpuconv.SofaSet(HEAD, 16000)
    module = pickle.loads(pickle.dumps(room(ears=head, early=0.02, images_level=0, normalize="none").to(device)))
    y, early, drawn = module(x)
    assert y.shape == early.shape == (3, 2, 2000) and y.device.type == device
    d = {name: value.cpu().double().numpy() for name, value in drawn.items()}
    assert len(set(d["azimuth"])) == 3 and (abs(d["azimuth"]) <= 180).all()
    turn = np.stack([d["azimuth"], np.zeros(3)], -1)[:, None]
    h = gpuconv.simulate_rooms(d["size"], d["source"][:, None], d["microphones"], rt60=d["rt60"][:, None], frames=6400,
                               receiver_direction=turn, ears=head)[:, 0, 0]  # fmt: skip
    want = gpuconv.convolve(x.cpu().numpy()[:, None], h, "causal")
    assert np.sqrt(np.sum((y.cpu().numpy() - want) ** 2) / np.sum(want**2)) <= 1e-2  # a GPU finds directions in single precision
    assert not torch.equal(y[:, 0], y[:, 1]) and early.square().sum() < y.square().sum()
    assert module.eval()(x[0])[0].shape == (2, 2000)


@needs_torch
@pytest.mark.parametrize("device", DEVICES)
def test_a_seed_gives_the_same_rooms_and_another_one_others(device):
    x = torch.randn(3, 1000, device=device)
    module = gt.RandomRoom(16000, rt60=(0.2, 0.3), p=0.5).to(device)
    draw = lambda seed: module(x, torch.Generator(device).manual_seed(seed))
    torch.testing.assert_close(draw(1), draw(1), rtol=0, atol=0)
    assert not torch.equal(draw(1), draw(2))
    made = torch.stack([draw(seed) for seed in range(8)])
    dry = (made == x).all(-1)
    assert dry.any() and not dry.all()  # p
    assert torch.equal(module.eval()(x), x)
    assert module.train()(x[0]).shape == (1000,)


@needs_torch
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("heads", [False, True])
def test_gradients_and_compiled_modules_pass_through_random_rooms(device, heads):
    x = torch.randn(2, 800, device=device, requires_grad=True)
    module = gt.RandomRoom(16000, rt60=0.2, early=0.05, ears=gpuconv.SofaSet(HEAD, 16000) if heads else None).to(device)
    y, early = module(x)
    (y.sum() + early.sum()).backward()
    assert x.grad.isfinite().all() and x.grad.any()
    torch._dynamo.reset()
    compiled = torch.compile(module, fullgraph=True, backend="eager" if device == "cpu" else "aot_eager")
    torch.manual_seed(7)
    want = module(x.detach())
    torch.manual_seed(7)
    for a, b in zip(compiled(x.detach()), want):
        torch.testing.assert_close(a, b)


@needs_torch
def test_workers_of_a_loader_draw_their_own_rooms():
    class Noise(torch.utils.data.Dataset):
        def __init__(self):
            self.room = room()

        def __len__(self):
            return 4

        def __getitem__(self, index):
            return self.room(torch.ones(500))[1]["size"]

    loader = torch.utils.data.DataLoader(Noise(), batch_size=1, num_workers=2)
    sizes = torch.cat(list(loader)).reshape(4, 3)
    assert len({tuple(size.tolist()) for size in sizes}) == 4


@needs_torch
@pytest.mark.parametrize("change, words", [({"size": 3}, "size"), ({"rt60": (2, 1)}, "rt60"), ({"p": 2}, "p="), ({"normalize": "x"}, "normalize"),
                                           ({"microphones": [[1, 0, 0]]}, "microphones"), ({"early": -1}, "early")])
def test_impossible_random_rooms_are_refused(change, words):
    with pytest.raises((ValueError, TypeError), match=words):
        room(**change)


@needs_torch
def test_heads_have_the_rate_of_the_room_and_no_microphones():
    for change in ({"ears": gpuconv.SofaSet(HEAD)}, {"ears": gpuconv.SofaSet(HEAD, 16000), "microphones": [[0, 0, 0]]}):
        with pytest.raises(ValueError, match="use a set at 16000 Hz"):
            room(**change)
