"""gpuconv.torch on the CPU: values, gradients of first and second order, torch.compile, autocast, vmap, DataLoader."""

import copy
import io
import pickle

import gpuconv
import numpy as np
import pytest
from conftest import assert_close, oracle

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
import gpuconv.torch as gt  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Input #. requires gradient and is not a double")


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(1)


def needing(*shape):
    return torch.randn(*shape).requires_grad_()


@pytest.mark.parametrize("mode", ["full", "same", "valid", "causal"])
@pytest.mark.parametrize("shapes", [((40,), (9,)), ((2, 3, 30), (8,)), ((2, 3, 30), (2, 1, 8)), ((3, 1, 20), (2, 20)), ((1, 10), (4, 3))])
def test_values_and_gradients(mode, shapes):
    x, h = needing(*shapes[0]), needing(*shapes[1])
    assert_close(gpuconv.convolve(x, h, mode).detach(), oracle(x.detach(), h.detach(), mode))
    delay = 4 if mode == "causal" else 0
    assert torch.autograd.gradcheck(lambda a, b: gt.convolve(a, b, mode, delay=delay), (x, h), eps=0.1, atol=2e-2, rtol=1e-3)


@pytest.mark.parametrize("mode, delay", [("full", 0), ("same", 0), ("valid", 0), ("causal", 4), ("causal", 300)])
def test_float64_is_computed_in_64_bits(mode, delay):
    """gradcheck and gradgradcheck with their own tolerances, forward mode, vmap and the refusals of floats."""
    x, h = torch.randn(2, 3, 20, dtype=torch.float64), torch.randn(3, 7, dtype=torch.float64)
    call = lambda a, b: gpuconv.convolve(a, b, mode, delay=delay)  # noqa: E731
    y = call(x, h)
    assert y.dtype == torch.float64
    assert_close(y, oracle(x, h, mode, delay), bound=-290)
    x.requires_grad_()
    h.requires_grad_()
    assert torch.autograd.gradcheck(call, (x, h), check_forward_ad=True, check_batched_grad=True)
    assert torch.autograd.gradgradcheck(call, (x, h))
    with pytest.raises(ValueError, match="h has NaN"):
        call(x.detach(), h.detach() * float("nan"))


def test_modules_of_float64():
    reverb = gt.RandomReverb([torch.randn(50), torch.randn(30)], p=1.0).double()
    module = gt.Convolution(torch.randn(9), "causal", learn=True).double()
    x = torch.randn(3, 200, dtype=torch.float64)
    assert reverb(x).dtype == torch.float64
    assert torch.autograd.gradcheck(lambda a: module(a), (x[:, :20].clone().requires_grad_(),))
    with torch.no_grad():
        assert_close(module(x), oracle(x, module.h, "causal"), bound=-290)


def test_second_order_gradients():
    assert torch.autograd.gradgradcheck(
        lambda a, b: gt.convolve(a, b, "same"), (needing(2, 1, 12), needing(3, 5)), eps=0.1, atol=3e-2, rtol=1e-2
    )


def test_forward_mode():
    """Jacobian times vector, dual numbers, and Hessians of forward over reverse mode, of each operator."""
    x, h, dx, dh = torch.randn(2, 30), torch.randn(2, 7), torch.randn(2, 30), torch.randn(2, 7)
    want = oracle(dx, h, "same") + oracle(x, dh, "same")
    call = lambda a, b: gpuconv.convolve(a, b, "same")  # noqa: E731
    assert_close(torch.func.jvp(call, (x, h), (dx, dh))[1], want, bound=-110)
    with torch.autograd.forward_ad.dual_level():
        dual = [torch.autograd.forward_ad.make_dual(*pair) for pair in ((x, dx), (h, dh))]
        assert_close(torch.autograd.forward_ad.unpack_dual(call(*dual)).tangent, want, bound=-110)
        assert torch.autograd.forward_ad.unpack_dual(call(x, h)).tangent is None
    loss = lambda a, b: call(a, b).pow(3).sum()  # noqa: E731
    for argument in (0, 1):
        forward = torch.func.jacfwd(torch.func.grad(loss, argument), (0, 1))(x, h)
        reverse = torch.func.jacrev(torch.func.grad(loss, argument), (0, 1))(x, h)
        for a, b in zip(forward, reverse):
            assert_close(a, b.numpy(), bound=-90)


def test_gradients_of_long_signals_match_autograd_of_an_fft():
    x, h = needing(3, 20000), needing(3, 1500)
    weight = torch.randn(3, 21499)
    (gt.convolve(x, h) * weight).sum().backward()
    got = x.grad.clone(), h.grad.clone()
    x64, h64 = x.detach().double().requires_grad_(), h.detach().double().requires_grad_()
    y = torch.fft.irfft(torch.fft.rfft(x64, 32768) * torch.fft.rfft(h64, 32768), 32768)[..., :21499]
    (y * weight).sum().backward()
    assert_close(got[0], x64.grad.numpy(), bound=-110)
    assert_close(got[1], h64.grad.numpy(), bound=-110)


def test_strides_axes_and_types():
    x, h = torch.randn(2, 3, 500), torch.randn(60)
    want = oracle(x, h)
    assert_close(gt.convolve(x.transpose(1, 2).contiguous().transpose(1, 2), h), want)
    assert_close(gt.convolve(x.movedim(-1, 0), h, axis=0).movedim(0, -1), want)
    assert_close(gpuconv.convolve(x[..., ::2], h.flip(0)), oracle(x[..., ::2], h.flip(0)))
    for dtype, bound in ((torch.float16, -60), (torch.bfloat16, -40)):
        y = gt.convolve(x.to(dtype), h.to(dtype))
        assert y.dtype == dtype
        assert_close(y.float(), want, bound)
    assert gt.convolve(x.half(), h).dtype == torch.float32


@pytest.mark.parametrize("name", ["convolve", "gradient_signal", "gradient_response", "gradient_both"])
def test_the_operators_are_well_formed(name):
    x, h = needing(2, 3, 60), needing(2, 1, 20)
    arguments = {"gradient_response": (x, needing(2, 3, 60), 3, 15, [2, 1]), "gradient_both": (needing(2, 3, 50), x, h, 3)}.get(name, (x, h, 3, 50))
    outcome = torch.library.opcheck(getattr(torch.ops.gpuconv, name), arguments)
    assert set(outcome.values()) == {"SUCCESS"}


def test_torch_compile_keeps_one_graph():
    x, h = needing(2, 300), needing(40)
    model = torch.compile(lambda a, b: gt.convolve(a * 2, b, "causal").relu().sum(), backend="aot_eager", fullgraph=True)
    compiled = model(x, h)
    compiled.backward()
    got = x.grad.clone(), h.grad.clone()
    x.grad = h.grad = None
    plain = gt.convolve(x * 2, h, "causal").relu().sum()
    plain.backward()
    assert torch.allclose(compiled, plain)
    assert torch.allclose(got[0], x.grad) and torch.allclose(got[1], h.grad)


class Watching(torch.utils._python_dispatch.TorchDispatchMode):
    """Keeps the names of the operators that are called."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        self.seen.append(str(operator))
        return operator(*args, **(kwargs or {}))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("call", [
    lambda x, h, *_: gt.convolve(x, h, "same"),
    lambda x, h, pre, skip: gt.convolve(x, h, "causal", pre=pre, post=x, skip=skip),
    lambda x, h, *_: gt.time_varying(x[0], h.expand(3, 3, 20), 30, interpolate="linear"),
], ids=["plain", "gated", "time-varying"])
def test_eager_calls_and_operators_give_the_same_bytes(dtype, call):
    """Values and gradients of first and second order; a mode of PyTorch that looks at calls gets operators of torch.library."""
    tensors = [torch.randn(*shape).mul(0.1).to(dtype).requires_grad_() for shape in ((4, 3, 90), (3, 20), (90,), (3,))]

    def made():
        y = call(*tensors)
        first = [part for part in torch.autograd.grad(y.sum(), tensors, create_graph=True, allow_unused=True) if part is not None]
        second = torch.autograd.grad(sum(part.sum() for part in first), tensors, allow_unused=True)
        return [y, *first, *(part for part in second if part is not None)]

    eager = made()
    with Watching() as mode:
        operators = made()
    assert any("gpuconv" in name for name in mode.seen)
    assert len(eager) == len(operators) > 4 and all(torch.equal(a, b) for a, b in zip(eager, operators))


def test_autocast():
    layer, h, x = torch.nn.Linear(64, 64), needing(9), torch.randn(4, 64)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        low = layer(x)
        y = gt.convolve(low, h)
        (y * y).mean().backward()
    assert low.dtype == torch.bfloat16 and y.dtype == torch.float32
    assert layer.weight.grad.dtype == torch.float32 and torch.isfinite(h.grad).all()


def test_vmap():
    x, h = torch.randn(3, 2, 50), torch.randn(3, 7)
    y = torch.func.vmap(gt.convolve)(x, h)
    assert_close(y, oracle(x, h[:, None]))
    per_example = torch.func.vmap(torch.func.grad(lambda b, a: gt.convolve(a, b).square().sum()))(h, x)
    for i in range(3):
        own = h[i].clone().requires_grad_()
        gt.convolve(x[i], own).square().sum().backward()
        assert torch.allclose(per_example[i], own.grad, rtol=1e-4, atol=1e-3)


def test_a_convolution_module():
    h = torch.randn(3, 200)
    module = gt.Convolution(h, "causal")
    x = torch.randn(5, 3, 1000)
    want = oracle(x, h, "causal")
    for _ in range(2):
        assert_close(module(x), want)
    module.h.mul_(2)
    assert_close(module(x), 2 * want)
    module.h.data.mul_(2)  # which the version of the tensor does not count
    assert_close(module(x), 4 * want)
    module.h.numpy()[:] *= 2  # nor what NumPy or another process writes
    assert_close(module(x), 8 * want)
    for twin in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert torch.equal(twin(x), module(x))
    store = io.BytesIO()
    torch.save(module.state_dict(), store)
    assert "h" in module.state_dict() and not list(module.parameters())
    learned = gt.Convolution(h, learn=True)
    learned(x).square().sum().backward()
    assert learned.h.grad.shape == h.shape
    with pytest.raises(ValueError, match="NaN"):
        gt.Convolution(h * float("nan"))
    with pytest.raises(ValueError, match="mode='half'"):
        gt.Convolution(h, "half")


def test_a_traced_module_computes_with_its_input_and_its_taps():
    """jit.trace must record the operator and not the result of the example."""
    module, (x, y) = gt.Convolution(torch.randn(2, 40), "causal").requires_grad_(False), torch.randn(2, 3, 2, 300)
    for call in (module, lambda a: gt.time_varying(a, torch.stack((module.h, module.h), 1), 150, mode="causal")):
        traced = torch.jit.trace(call, (x,))
        assert_close(traced(y), oracle(y, module.h, "causal"))
    assert_close(torch.jit.trace(gpuconv.convolve, (x, module.h))(y, 2 * module.h), oracle(y, 2 * module.h))


@pytest.mark.parametrize("needs", [False, True])
@pytest.mark.parametrize("call", [
    gt.convolve,
    lambda x, h: gt.convolve(x.double(), h.double()),
    lambda x, h: gt.convolve(x, h, pre=torch.ones(100)),
    lambda x, h: gt.time_varying(x, h.expand(10, 8), 10),
], ids=["float32", "float64", "gated", "time-varying"])
def test_a_response_that_is_not_finite_is_refused_with_and_without_gradients(call, needs):
    x, h = torch.randn(100, requires_grad=needs), torch.randn(8)
    h[3] = float("nan")
    with pytest.raises(ValueError, match="h has NaN or infinite taps"):
        call(x, h)


@pytest.mark.parametrize("what", ["x", "pre", "post", "skip"])
def test_gradients_of_16_bits_are_summed_in_32(what):
    """Products or rows that are rounded to bfloat16 before they are summed are wrong where they cancel."""
    x, h = torch.randn(64, 500).bfloat16(), torch.randn(20).bfloat16()
    shared = {"x": x[0], "pre": torch.ones(500).bfloat16(), "post": torch.ones(500).bfloat16(), "skip": torch.zeros(64)}[what]
    g = torch.randn(64, 500)
    if what == "skip":
        g -= (g * x).sum(-1, keepdim=True) / x.float().square().sum(-1, keepdim=True) * x
    elif what == "x":
        h = h.expand(64, 20)
        g -= g.mean(0)
    else:
        x = x[:1].expand(64, 500)
        g -= g.mean(0)

    def gradient(kind):
        own, rows = shared.detach().to(kind).requires_grad_(), x.to(kind)
        gates = {} if what == "x" else {what: own}
        gt.convolve(own if what == "x" else rows, h.to(kind), "causal", **gates).backward(g.bfloat16().to(kind))
        return own.grad.double().numpy()

    assert_close(gradient(torch.bfloat16), gradient(torch.float64), bound=-45)


def test_learning_a_response_converges():
    target = torch.tensor([0.5, -0.2, 0.1, 0.0, 0.3])
    module = gt.Convolution(torch.zeros(5), "full", learn=True)
    optimizer = torch.optim.Adam(module.parameters(), lr=0.05)
    x = torch.randn(8, 200)
    y = torch.from_numpy(oracle(x, target)).float()
    for _ in range(150):
        optimizer.zero_grad()
        (module(x) - y).square().mean().backward()
        optimizer.step()
    assert (module.h.detach() - target).abs().max() < 0.02


def test_a_convolver_of_a_tensor():
    h, x = torch.randn(2, 100), torch.randn(4, 2, 700)
    convolver = gpuconv.Convolver(h)
    assert_close(convolver(x, "same"), oracle(x, h, "same"))
    assert_close(convolver(x.movedim(-1, 0), axis=0).movedim(0, -1), oracle(x, h))
    assert torch.equal(pickle.loads(pickle.dumps(convolver))(x), convolver(x))


def test_a_convolver_of_a_tensor_gives_gradients():
    h, x = torch.randn(2, 100), needing(4, 2, 700)
    gpuconv.Convolver(h)(x, "same").square().sum().backward()
    twin = x.detach().clone().requires_grad_()
    gpuconv.convolve(twin, h, "same").square().sum().backward()
    assert torch.equal(x.grad, twin.grad)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_an_impulse_response_keeps_the_type_of_the_signal(dtype):
    taps = torch.randn(50)
    ir, x = gpuconv.ImpulseResponse(taps, 48000), torch.randn(2, 300).to(dtype)
    for y in (gpuconv.Convolver(ir)(x, "causal"), gpuconv.StreamingConvolver(ir, channels=2)(x)):
        assert y.dtype == dtype
        assert_close(y.float(), oracle(x.float(), taps, "causal"), bound={4: -110, 2: -40}[dtype.itemsize])


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("options", [{"p": 1.0}, {"p": 0.5, "wet": (0.2, 0.9)}, {"p": 0.5, "channels": 0}])
def test_torch_compile_of_modules_keeps_one_graph(backend, options):
    irs = [torch.randn(2, 50), torch.randn(2, 30)]
    reverb = gt.RandomReverb(irs, **options)
    channels = 1 if "channels" in options else 2
    module = torch.nn.Sequential(reverb, gt.Convolution(torch.randn(channels, 20), "causal"))
    x = torch.randn(16, channels, 300).requires_grad_()
    compiled = compiled_or_skip(module, backend, x)
    y = compiled(x)
    y.square().sum().backward()
    assert y.shape == x.shape and torch.isfinite(x.grad).all()
    # The rows that are not chosen stay as they are; the others are one of the responses.
    h = module[1].h
    untouched = (compiled(x) - gt.convolve(x, h, "causal")).flatten(1).abs().amax(1) < 1e-3
    assert (untouched.sum() == 0) if options["p"] == 1.0 else (0 < untouched.sum() < 16)
    assert torch.equal(torch.compile(reverb.eval(), backend=backend, fullgraph=True)(x), x)


def compiled_or_skip(model, backend, *arguments):
    """Compiles and calls a model; skips the test where the default backend does not run."""
    compiled = torch.compile(model, backend=backend, fullgraph=True)
    try:
        compiled(*arguments)
    except Exception as error:  # no C++ compiler that fits, for example
        if backend != "inductor" or "nductor" not in type(error).__module__ + str(error):
            raise
        pytest.skip(f"the default backend of torch.compile does not run here: {str(error)[:200]}")
    return compiled


def test_torch_compile_with_the_default_backend():
    x, h = needing(2, 300), needing(40)
    got = compiled_or_skip(lambda a, b: gt.convolve(a * 2, b, "causal").relu().sum(), "inductor", x, h)(x, h)
    got.backward()
    assert torch.allclose(got, gt.convolve(x * 2, h, "causal").relu().sum()) and torch.isfinite(h.grad).all()


class Utterances(torch.utils.data.Dataset):
    def __init__(self):
        self.reverb = gt.RandomReverb([torch.randn(3000), torch.randn(1000)], p=1.0)

    def __len__(self):
        return 12

    def __getitem__(self, index):
        return self.reverb(torch.randn(8000))


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_data_loader_workers(start):
    data = Utterances()
    data.reverb(torch.randn(8000))  # threads of the parent before the fork
    loader = torch.utils.data.DataLoader(data, batch_size=4, num_workers=2, multiprocessing_context=start)
    batches = list(loader)
    assert [tuple(batch.shape) for batch in batches] == [(4, 8000)] * 3
    assert all(torch.isfinite(batch).all() for batch in batches)


def test_numpy_and_torch_agree():
    x, h = torch.randn(3, 9000), torch.randn(700)
    assert np.array_equal(gpuconv.convolve(x, h).numpy(), gpuconv.convolve(x.numpy(), h.numpy()))


@pytest.mark.parametrize(
    "x, h, kind, text",
    [
        (torch.ones(5).double(), torch.ones(3), TypeError, r"x has dtype torch.float64.*x.float\(\)"),
        (torch.ones(5), torch.ones(3).int(), TypeError, r"h has dtype torch.int32"),
        (torch.ones(5).short(), torch.ones(3), TypeError, r"x.float\(\) / 32768 for audio"),
        (torch.ones(5) * 1j, torch.ones(3), TypeError, r"x.real and x.imag"),
        (torch.ones(9000, 2), torch.ones(2000, 2), ValueError, r"frames are the last axis: .* axis=-2"),
        (torch.ones(0), torch.ones(3), ValueError, r"x has no frames"),
        (torch.ones(5), torch.ones(3, 0), ValueError, r"h has no frames"),
        (torch.ones(5), torch.ones(3) * float("nan"), ValueError, r"h has NaN"),
        (torch.ones(2, 5), torch.ones(3, 3), ValueError, r"do not broadcast"),
        (torch.ones(5, device="meta"), torch.ones(3), ValueError, r"x is on meta and h on cpu"),
        (torch.ones(5).to_sparse(), torch.ones(3), TypeError, r"to_dense"),
        (torch.ones(5), np.ones(3, np.float32), TypeError, r"x is an array of torch and h of numpy"),
        (torch.ones(5), torch.ones(3).cfloat(), TypeError, r"use h.real and h.imag"),
        (torch.ones(5), "hall.wav", TypeError, r"h is str, no array; .* by gpuconv.load_ir"),
    ],
)
def test_bad_tensors_say_what_fits(x, h, kind, text):
    with pytest.raises(kind, match=text):
        gpuconv.convolve(x, h)


@pytest.mark.parametrize(
    "call, kind, text",
    [
        (lambda: gt.convolve(np.ones(5), torch.ones(3)), TypeError, r"x is ndarray; use a tensor: torch.from_numpy\(x\)"),
        (lambda: gt.RandomReverb("hall.wav"), ValueError, r"use a sequence of them: \[irs\]"),
        (lambda: gt.RandomReverb(torch.ones(5)), ValueError, r"use a sequence of them: \[irs\]"),
        (lambda: gt.RandomReverb([torch.ones(5)], wet="a"), TypeError, "wet='a': use a number"),
        (lambda: gt.RandomReverb([torch.ones(5)], p=1.0)(np.ones((2, 9))), TypeError, "x is ndarray; use a tensor"),
        (lambda: gpuconv.Convolver(torch.ones(3, 7))(torch.ones(2, 9)), ValueError, "do not broadcast"),
        (lambda: gpuconv.convolve(torch.ones(9), torch.ones(3), axis="last"), TypeError, "axis='last'"),
    ],
)
def test_wrong_tensors_of_calls_say_what_fits(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_a_pending_negation_counts():
    x = torch.randn(2, 50, dtype=torch.complex64).conj().imag
    assert x.is_neg()
    h = torch.randn(7)
    assert_close(gpuconv.convolve(x, h), oracle(x.resolve_neg(), h))


def test_a_meta_tensor_has_its_shape():
    assert gt.convolve(torch.ones(2, 50, device="meta"), torch.ones(7, device="meta")).shape == (2, 56)


def test_streaming_tensors():
    h, x = torch.randn(400), torch.randn(1000)
    stream = gpuconv.StreamingConvolver(h)
    assert_close(stream(x), oracle(x, h)[:1000], bound=-110)
