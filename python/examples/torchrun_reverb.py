"""A convolver for each rank of torchrun: every rank convolves its share of the signals, and rank 0 collects the levels.

    torchrun --nproc-per-node 2 python/examples/torchrun_reverb.py

Each rank uses the GPU of its number if there is one, else the CPU.
"""

import os

import torch
import torch.distributed as dist

import gpuconv
import gpuconv.torch


def main() -> None:
    gpu = torch.cuda.is_available() and gpuconv.built_with_cuda
    dist.init_process_group("nccl" if gpu else "gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if gpu else torch.device("cpu")
    generator = torch.Generator().manual_seed(0)
    h = torch.randn(8000, generator=generator) * torch.exp(-torch.arange(8000) / 1500)
    signals = torch.randn(16, 48000, generator=generator)

    convolver = gpuconv.Convolver(h.to(device))  # prepared once for each rank
    mine = signals[rank::ranks].to(device)
    wet = convolver(mine, "causal")

    levels = torch.zeros(len(signals), device=device)
    levels[rank::ranks] = wet.square().mean(-1)
    dist.all_reduce(levels)
    if rank == 0:
        alone = gpuconv.convolve(signals, h, "causal").square().mean(-1)
        assert torch.allclose(levels.cpu(), alone, rtol=1e-4)
        print(f"{ranks} ranks convolved {len(signals)} signals")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
