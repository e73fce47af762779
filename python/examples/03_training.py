# %% [markdown]
# # Training with PyTorch
# Random reverberation in the training step, and a response that is learned.

# %%
import torch

import gpuconv.torch

device = "cuda" if torch.cuda.is_available() and gpuconv.built_with_cuda else "cpu"
torch.manual_seed(0)
decay = torch.exp(-torch.arange(4000) / 800)
irs = [decay * torch.randn(4000) for _ in range(8)]

# %% A module for the training loop, or for the workers of a DataLoader
reverb = gpuconv.torch.RandomReverb(irs, p=0.8, wet=(0.3, 1.0), normalize="energy").to(device)
model = torch.nn.Sequential(
    torch.nn.Conv1d(1, 16, 64, stride=16), torch.nn.ReLU(), torch.nn.Conv1d(16, 16, 9, stride=4), torch.nn.ReLU(),
    torch.nn.AdaptiveAvgPool1d(1), torch.nn.Flatten(), torch.nn.Linear(16, 2),
).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(3):
    x = torch.randn(8, 1, 16000, device=device)
    loss = torch.nn.functional.cross_entropy(model(reverb(x)), torch.zeros(8, dtype=torch.long, device=device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}: loss {loss.item():.3f}")

# %% Learn the response of a system from its input and output
target = irs[0][:64].to(device)
x = torch.randn(16, 2000, device=device)
y = gpuconv.torch.convolve(x, target, "causal")
system = gpuconv.torch.Convolution(torch.zeros(64), "causal", learn=True).to(device)
optimizer = torch.optim.Adam(system.parameters(), lr=0.05)
for step in range(200):
    loss = (system(x) - y).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"error of the learned taps {(system.h - target).abs().max().item():.4f}")
assert loss.item() < 1e-3
