"""Gates and a skip around a convolution, on the CPU and on a GPU: values and gradients of any order beside PyTorch's in double
precision, a model that trains the same with and without them, and refusals."""

import pytest

torch = pytest.importorskip("torch")

import gpuconv.torch as gt  # noqa: E402

DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
NAMES = ("x", "h", "pre", "post", "skip")
CASES = [  # batch of x, of h, frames, taps, mode, delay
    ((2, 3), (3,), 100, 100, "causal", 0),
    ((2, 3), (2, 3), 700, 40, "full", 0),
    ((4,), (1,), 90, 300, "same", 0),
    ((3, 1), (3, 2), 5000, 1200, "causal", 17),
    ((), (), 64, 9, "valid", 0),
]


def reference(x, h, mode, delay, pre, post, skip):
    """Returns the result in the type of its operands, by PyTorch's transforms."""
    n, m = x.shape[-1], h.shape[-1]
    size = n + m - 1
    u = x if pre is None else pre * x
    y = torch.fft.irfft(torch.fft.rfft(u, size) * torch.fft.rfft(h, size), size)
    offset, frames = {"full": (0, size), "same": ((m - 1) // 2, max(n, m)), "valid": (m - 1, n - m + 1), "causal": (delay, n)}[mode]
    if mode == "same":
        frames = n
    y = torch.nn.functional.pad(y, (0, offset + frames))[..., offset : offset + frames]
    if skip is not None:
        count = min(n, frames)
        y = y + torch.nn.functional.pad((skip[..., None] * x)[..., :count], (0, frames - count))
    return y if post is None else post * y


def operands(case, device, dtype=torch.float32, which=NAMES):
    """Returns random operands of a case, with the gates that are wanted."""
    batch, h_batch, n, m, mode, delay = case
    torch.manual_seed(3)
    whole = torch.broadcast_shapes(batch, h_batch)
    frames = {"full": n + m - 1, "same": n, "valid": n - m + 1, "causal": n}[mode]
    shapes = dict(x=batch + (n,), h=h_batch + (m,), pre=whole + (n,), post=whole + (frames,), skip=whole[-1:])
    return {
        name: torch.randn(shapes[name]).to(device, dtype).requires_grad_() if name in which else None for name in NAMES
    }


def call(function, o, case):
    if function is reference:
        return reference(o["x"], o["h"], case[4], case[5], o["pre"], o["post"], o["skip"])
    return gt.convolve(o["x"], o["h"], case[4], delay=case[5], pre=o["pre"], post=o["post"], skip=o["skip"])


def doubled(o):
    return {name: None if t is None else t.detach().double().requires_grad_() for name, t in o.items()}


def close(got, want, bound):
    assert got.shape == want.shape
    assert (got.double() - want).norm() <= bound * want.norm().clamp(min=1e-3), (got.double() - want).norm() / want.norm()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("which", [NAMES, ("x", "h", "pre"), ("x", "h", "post"), ("x", "h", "skip"), ("x", "h", "post", "skip")])
@pytest.mark.parametrize("case", CASES)
def test_values_and_gradients_are_those_of_the_formula(case, which, device):
    o = operands(case, device, which=which)
    d = doubled(o)
    got, want = call(gt.convolve, o, case), call(reference, d, case)
    close(got, want, 2e-6)
    g = torch.randn_like(got)
    used = [name for name in NAMES if o[name] is not None]
    made = torch.autograd.grad(got, [o[name] for name in used], g)
    wanted = torch.autograd.grad(want, [d[name] for name in used], g.double())
    for a, b in zip(made, wanted):
        close(a, b, 1e-5)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", CASES[:3])
def test_second_gradients_are_those_of_the_formula(case, device):
    o = operands(case, device)
    d = doubled(o)
    seconds = []
    for function, p in ((gt.convolve, o), (reference, d)):
        y = call(function, p, case)
        first = torch.autograd.grad(y.sin().sum(), list(p.values()), create_graph=True)
        seconds.append(torch.autograd.grad(sum(f.square().sum() for f in first), list(p.values())))
    for a, b in zip(*seconds):
        close(a, b, 1e-4)


@pytest.mark.parametrize("dtype, bound", [(torch.float16, 2e-3), (torch.bfloat16, 2e-2)])
@pytest.mark.parametrize("device", DEVICES)
def test_halves_keep_their_type(device, dtype, bound):
    o = operands(CASES[0], device, dtype)
    d = doubled(o)
    got = call(gt.convolve, o, CASES[0])
    assert got.dtype == dtype
    close(got, call(reference, d, CASES[0]), bound)


def test_broadcast_gates_have_the_gradients_of_whole_ones():
    o = operands(CASES[0], "cpu")
    small = torch.randn(3, 1, requires_grad=True)
    y = gt.convolve(o["x"], o["h"], "causal", pre=small, skip=torch.ones(()))
    whole = gt.convolve(o["x"], o["h"], "causal", pre=small.expand(2, 3, 100), skip=torch.ones(2, 3))
    assert torch.equal(y, whole)
    a, b = (torch.autograd.grad(v.square().sum(), small)[0] for v in (y, whole))
    assert a.shape == (3, 1) and torch.allclose(a, b)


def test_float64_passes_gradcheck():
    o = operands(((2,), (2,), 12, 5, "causal", 1), "cpu", torch.float64)
    assert torch.autograd.gradcheck(lambda x, h, a, b, d: gt.convolve(x, h, "causal", delay=1, pre=a, post=b, skip=d), tuple(o.values()))


def test_a_compiled_call_is_one_graph():
    o = operands(CASES[0], "cpu")
    compiled = torch.compile(lambda *v: call(gt.convolve, dict(zip(NAMES, v)), CASES[0]), fullgraph=True, backend="aot_eager")
    assert torch.allclose(compiled(*o.values()), call(gt.convolve, o, CASES[0]))


class Mixer(torch.nn.Module):
    """A layer of a model of long sequences: three projections, one of which is filtered between two gates."""

    def __init__(self, width, frames, fused):
        super().__init__()
        self.project = torch.nn.Linear(width, 3 * width)
        self.h = torch.nn.Parameter(torch.randn(width, frames) * torch.exp(-torch.arange(frames) / 8) / 4)
        self.skip = torch.nn.Parameter(torch.randn(width))
        self.fused = fused

    def forward(self, u):
        post, pre, x = self.project(u).transpose(1, 2).chunk(3, dim=1)
        function = gt.convolve if self.fused else reference
        y = call(function, dict(x=x, h=self.h, pre=pre, post=post, skip=self.skip), (0, 0, 0, 0, "causal", 0))
        return y.transpose(1, 2)


@pytest.mark.parametrize("device", DEVICES)
def test_a_model_trains_the_same_with_gates_and_without(device):
    losses = []
    for fused in (True, False):
        torch.manual_seed(5)
        model = torch.nn.Sequential(Mixer(8, 96, fused), Mixer(8, 96, fused), torch.nn.Linear(8, 1)).to(device)
        u = torch.randn(4, 96, 8, device=device)
        want = u.roll(3, dims=1)[..., :1] * u[..., 1:2]  # a product of a delayed and a present sample
        optimizer = torch.optim.Adam(model.parameters(), 1e-2)
        losses.append([])
        for _ in range(60):
            optimizer.zero_grad()
            loss = (model(u) - want).square().mean()
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
    assert losses[0][-1] < 0.5 * losses[0][0]
    assert torch.allclose(torch.tensor(losses[0]), torch.tensor(losses[1]), rtol=1e-2)


def test_refusals_name_the_argument():
    x, h = torch.randn(2, 100), torch.randn(2, 9)
    for name, shape in (("pre", (2, 99)), ("post", (3, 100)), ("skip", (3,))):
        with pytest.raises(ValueError, match=f"{name} has the shape"):
            gt.convolve(x, h, "causal", **{name: torch.randn(shape)})
    with pytest.raises(TypeError, match="post has dtype"):
        gt.convolve(x, h, "causal", post=torch.ones(2, 100, dtype=torch.int32))
    with pytest.raises(ValueError, match="axis=0"):
        gt.convolve(x, h, "causal", axis=0, pre=x)
