# %% [markdown]
# # Learned filters that change with time
# Noise that is shaped by magnitudes of frequency bands, block by block, as in differentiable synthesis (Engel et al.,
# "DDSP: Differentiable Digital Signal Processing", ICLR 2020, section 3.4). A network would give the magnitudes; here they
# are learned themselves, from a sound.

# %%
import torch

import gpuconv.torch


class FilteredNoise(torch.nn.Module):
    """Shapes white noise by the magnitudes of `bands` bands from 0 Hz to half the sampling rate.

    hop: frames of a block. The responses have 2 (bands - 1) taps, linear phase and a Hann window.
    """

    def __init__(self, hop: int, bands: int) -> None:
        super().__init__()
        self.hop, self.delay = hop, bands - 1
        self.register_buffer("window", torch.hann_window(2 * (bands - 1)))

    def forward(self, noise: torch.Tensor, magnitudes: torch.Tensor) -> torch.Tensor:
        """Returns the shaped noise. noise: (..., hop x blocks); magnitudes: (..., blocks, bands), 0 or more."""
        responses = torch.fft.irfft(torch.complex(magnitudes, torch.zeros_like(magnitudes)))
        responses = responses.roll(self.delay, -1) * self.window  # of zero phase, moved to be causal
        return gpuconv.torch.time_varying(noise, responses, self.hop, interpolate="linear", mode="causal", delay=self.delay)


def learn(steps: int = 150) -> list[float]:
    """Learns the magnitudes of a sound whose brightness rises and falls. Returns the loss of each step."""
    device = "cuda" if torch.cuda.is_available() and gpuconv.built_with_cuda else "cpu"
    torch.manual_seed(0)
    hop, bands, blocks = 64, 33, 40
    voice = FilteredNoise(hop, bands).to(device)
    noise = torch.rand(1, hop * blocks, device=device) * 2 - 1
    cutoff = 16 + 12 * torch.sin(torch.linspace(0, 6, blocks, device=device))
    sound = voice(noise, torch.sigmoid(cutoff[:, None] - torch.arange(bands, device=device))[None])
    learned = torch.zeros(1, blocks, bands, device=device, requires_grad=True)
    optimizer = torch.optim.Adam([learned], lr=0.1)
    losses = []
    for _ in range(steps):
        loss = (voice(noise, torch.nn.functional.softplus(learned)) - sound).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# %%
if __name__ == "__main__":
    losses = learn()
    print(f"loss {losses[0]:.4f}, after {len(losses)} steps {losses[-1]:.6f}")
