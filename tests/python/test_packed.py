"""Packed sequences, on the CPU and on a GPU: values beside each sequence alone, gradients of any order, offsets that are wrong."""

import gpuconv
import numpy as np
import pytest
from conftest import assert_close, oracle
from gpuconv import _packed

try:
    import torch
    import gpuconv.torch as gt
except ImportError:
    torch = None
needs_torch = pytest.mark.skipif(torch is None, reason="PyTorch is not installed")
DEVICES = ["cpu"] + (["cuda"] if torch and torch.cuda.is_available() and gpuconv.built_with_cuda else [])
LENGTHS = [50, 0, 300, 1, 128, 129, 2000, 700]
SHAPES = [(400,), (3, 400), (8, 1, 400), (8, 3, 400), (1, 3, 7), (1, 1, 5000)]
MODES = [("causal", 0), ("causal", 17), ("causal", 3000), ("same", 0)]


def alone(x, h, mode, delay, lengths, convolve=oracle):
    """Convolves each sequence alone."""
    parts, at = [], 0
    for s, count in enumerate(lengths):
        taps = h[min(s, len(h) - 1)] if len(h.shape) == 3 else h
        if count:
            parts.append(convolve(x[..., at : at + count], taps, mode, delay=delay))
        at += count
    return parts


@pytest.mark.parametrize("mode, delay", MODES)
@pytest.mark.parametrize("shape", SHAPES)
def test_each_sequence_is_convolved_for_itself(rng, shape, mode, delay):
    x, h = rng.standard_normal((3, sum(LENGTHS)), np.float32), rng.standard_normal(shape, np.float32)
    want = np.concatenate(alone(x, h, mode, delay, LENGTHS), -1)
    assert_close(gpuconv.convolve(x, h, mode, delay=delay, lengths=LENGTHS), want)
    if shape == (400,):
        assert_close(gpuconv.convolve(x[1], h, mode, delay=delay, lengths=LENGTHS), want[1])
        halves = gpuconv.convolve(x.astype(np.float16), h.astype(np.float16), mode, delay=delay, lengths=np.array(LENGTHS))
        assert halves.dtype == np.float16 and np.isfinite(halves).all()


def offsets(lengths=LENGTHS, device="cpu", dtype="int32"):
    return torch.tensor([0, *np.cumsum(lengths)], dtype=getattr(torch, dtype), device=device)


@needs_torch
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("where", ["host", "device", "device, longest given"])
@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_are_those_of_each_sequence_alone(shape, where, device):
    torch.manual_seed(2)
    x, h = torch.randn(3, sum(LENGTHS), device=device, requires_grad=True), torch.randn(shape, device=device, requires_grad=True)
    keywords = {"cu_seqlens": offsets(device="cpu" if where == "host" else device)}
    if "given" in where:
        keywords["max_seqlen"] = max(LENGTHS)
    g = torch.randn(3, sum(LENGTHS), device=device)
    for mode, delay in MODES:
        y = gt.convolve(x, h, mode, delay=delay, **keywords)
        wide = [tensor.detach().double().requires_grad_() for tensor in (x, h)]
        want = torch.cat(alone(*wide, mode, delay, LENGTHS, gt.convolve), -1)
        assert_close(y.detach().cpu(), want.detach().cpu().numpy())
        for got, exact in zip(torch.autograd.grad(y, (x, h), g), torch.autograd.grad(want, wide, g.double())):
            assert_close(got.cpu(), exact.cpu().numpy(), -105)


@needs_torch
def test_second_gradients_and_those_by_torch_func():
    lengths = [5, 0, 9, 2]
    x, h = torch.randn(2, 16, requires_grad=True), torch.randn(4, 1, 4, requires_grad=True)
    call = lambda a, b: gt.convolve(a, b, "same", cu_seqlens=offsets(lengths))  # noqa: E731
    with pytest.warns(UserWarning, match="not a double"):
        assert torch.autograd.gradcheck(call, (x, h), eps=0.1, atol=2e-2, rtol=1e-3)
        assert torch.autograd.gradgradcheck(call, (x, h), eps=0.1, atol=3e-2, rtol=1e-2)
    loss = lambda a: call(a, h).square().sum()  # noqa: E731
    assert torch.allclose(torch.func.grad(loss)(x), torch.autograd.grad(loss(x), x)[0])
    with pytest.raises(NotImplementedError, match="vmap of packed sequences"):
        torch.func.vmap(lambda a: call(a, h))(torch.randn(3, 2, 16))


@needs_torch
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype, bound", [("float16", -58), ("bfloat16", -40)])
def test_halves_keep_their_type(dtype, bound, device):
    dtype = getattr(torch, dtype)
    x, h = torch.randn(3, sum(LENGTHS), device=device).to(dtype), torch.randn(3, 400, device=device).to(dtype).requires_grad_()
    y = gt.convolve(x, h, "causal", cu_seqlens=offsets())
    y.float().sum().backward()
    assert y.dtype == h.grad.dtype == dtype
    assert_close(y.detach().float().cpu(), np.concatenate(alone(x.cpu().float(), h.detach().cpu().float(), "causal", 0, LENGTHS), -1), bound)


@needs_torch
def test_a_compiled_call_is_one_graph_with_the_same_bytes():
    x, h, cu = torch.randn(3, sum(LENGTHS), requires_grad=True), torch.randn(3, 60, requires_grad=True), offsets()
    call = lambda a, b: gt.convolve(a, b, "causal", cu_seqlens=cu, max_seqlen=2000).sin()  # noqa: E731
    made = []
    for form in (call, torch.compile(call, backend="aot_eager", fullgraph=True)):
        y = form(x, h)
        made.append([y, *torch.autograd.grad(y.sum(), (x, h))])
    assert all(torch.equal(a, b) for a, b in zip(*made))


@needs_torch
@pytest.mark.parametrize("shape", SHAPES)
def test_offsets_that_are_not_looked_at_give_the_same_and_stay_in_the_arrays(shape):
    """What is computed of offsets that stay on a GPU, with tensors and jobs in host memory."""

    class Tensors(_packed.Gpu):
        def __init__(self, like):
            self.torch, self.like, self.address, self.contiguous = torch, like, torch.Tensor.data_ptr, torch.Tensor.contiguous
            self.device, self.stream = None, 0

        def kind(self, array):
            return 0

        def run(self, operation, rows, group, offset, gradient):
            _packed._core.compute_ragged((operation, group, offset, gradient), rows, 1)

    batch, taps, x, g, h = shape[:-1], shape[-1], torch.randn(3, sum(LENGTHS)), torch.randn(3, sum(LENGTHS)), torch.randn(shape)
    checked, unseen = _packed.Packing(offsets().numpy(), 0), _packed.Packing(offsets(), max(LENGTHS))
    for operation, first, second in ((0, x, h), (1, g, h), (2, g, x)):
        for offset in (0, 17, 199):
            rest = offset, taps, batch
            want = _packed.compute(_packed.Host(1), operation, first.numpy(), second.numpy(), *rest, checked)
            assert_close(_packed.compute(Tensors(x), operation, first, second, *rest, unseen), want.astype(float), -110)
        for wrong in ([0, 3000, 1000, x.shape[1]], [-5, -7, 9000, 4], [1 << 30, -(1 << 30), 7, 0], [0, 0, 0, 0]):
            if shape[0] != 8:
                packing = _packed.Packing(torch.tensor(wrong), 500)
                assert torch.isfinite(_packed.compute(Tensors(x), operation, first, second, *rest, packing)).all()
                assert all(torch.isfinite(made).all() for made in _packed.compute_both(Tensors(x), g, x, h, offset, packing))


@needs_torch
@pytest.mark.skipif("cuda" not in DEVICES, reason="there is no GPU")
def test_a_graph_captures_offsets_that_change_and_survives_wrong_ones():
    x, h, cu = torch.randn(3, 4000, device="cuda"), torch.randn(3, 400, device="cuda"), offsets([1000, 2500, 500], "cuda")
    call = lambda: gt.convolve(x, h, "causal", cu_seqlens=cu, max_seqlen=2500)  # noqa: E731
    with torch.no_grad():
        call()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = call()
        for lengths in ([1000, 2500, 500], [0, 2000, 2000], [2500, 1, 1499]):
            cu.copy_(offsets(lengths))
            graph.replay()
            want = np.concatenate(alone(x.cpu(), h.cpu(), "causal", 0, lengths), -1)
            assert_close(y.cpu(), want)
        for wrong in ([0, 3000, 1000, 4000], [-5, -7, 9000, 4000], [1 << 30, -(1 << 30), 7, 0], [0, 0, 0, 0]):
            cu.copy_(torch.tensor(wrong))
            graph.replay()
            assert torch.isfinite(y).all()
    torch.cuda.synchronize()


@needs_torch
@pytest.mark.parametrize(
    "wrong, kind, text",
    [
        ([0, 60, 50, 100], ValueError, r"cu_seqlens\[2\]=50 is less than cu_seqlens\[1\]=60"),
        ([0, 50, 200], ValueError, r"cu_seqlens\[-1\]=200, and x has 100 frames"),
        ([0, 200, 100], ValueError, r"cu_seqlens\[2\]=100 is less than cu_seqlens\[1\]=200"),
        ([0, 50], ValueError, r"cu_seqlens\[-1\]=50, and x has 100 frames"),
        ([-4, 50, 100], ValueError, r"cu_seqlens\[0\]=-4: use 0"),
        ([0, -1, 100], ValueError, r"cu_seqlens\[1\]=-1 is less than cu_seqlens\[0\]=0"),
        ([0, 80, 100], ValueError, r"sequence 0 has 80 frames, more than max_seqlen=64"),
        ([0], TypeError, r"cu_seqlens has the shape \(1,\)"),
        ([0.0, 100.0], TypeError, r"the type float32"),
    ],
)
def test_wrong_offsets_are_refused_with_their_value(wrong, kind, text):
    for needs in (False, True):
        x = torch.ones(2, 100, requires_grad=needs)
        with pytest.raises(kind, match=text):
            gt.convolve(x, torch.ones(3), "causal", cu_seqlens=torch.tensor(wrong), max_seqlen=64 if 80 in wrong else None)


@pytest.mark.parametrize(
    "x, h, keywords, kind, text",
    [
        ((2, 100), (3,), {}, ValueError, "mode='full': packed sequences keep their length"),
        ((2, 100), (3,), {"mode": "valid"}, ValueError, "mode='valid': packed"),
        ((100, 2), (3,), {"mode": "same", "axis": 0}, ValueError, "axis=0: frames of packed sequences"),
        ((1, 2, 100), (3,), {"mode": "same"}, ValueError, r"x of shape \(1, 2, 100\)"),
        ((2, 100), (3, 3), {"mode": "same"}, ValueError, r"h of shape \(3, 3\) does not fit 2 sequences of 2 channels"),
        ((2, 100), (3, 1, 3), {"mode": "same"}, ValueError, r"h of shape \(3, 1, 3\) does not fit"),
        ((2, 100), (3,), {"mode": "same", "lengths": [50, 51]}, ValueError, "lengths add up to 101, and x has 100 frames"),
        ((2, 100), (3,), {"mode": "same", "lengths": [101, -1]}, ValueError, "use the frames of each sequence, 0 or more"),
        ((2, 100), (3,), {"mode": "same", "lengths": []}, ValueError, "use the frames of each sequence"),
    ],
)
def test_wrong_shapes_and_lengths_say_what_fits(x, h, keywords, kind, text):
    arrays = [np.ones(x, np.float32), np.ones(h, np.float32)]
    for ones in [arrays] + ([[torch.from_numpy(a) for a in arrays]] if torch else []):
        with pytest.raises(kind, match=text):
            gpuconv.convolve(*ones, **{"lengths": [50, 50], **keywords})


@needs_torch
def test_gates_and_packed_sequences_are_refused_together():
    with pytest.raises(ValueError, match="cu_seqlens with pre, post or skip"):
        gt.convolve(torch.ones(9), torch.ones(3), "same", pre=torch.ones(9), cu_seqlens=torch.tensor([0, 9]))
