"""Ray Data: actors that keep their convolver and convolve batches of signals.

    python python/examples/ray_reverb.py

On a cluster with GPUs: gpus=1, and CuPy arrays in __call__.
"""

import numpy as np
import ray

import gpuconv


class Reverb:
    """An actor: prepares the response once, then convolves batch after batch."""

    def __init__(self, taps: np.ndarray) -> None:
        self.convolver = gpuconv.Convolver(taps, threads=1)

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        batch["wet"] = self.convolver(np.ascontiguousarray(batch["data"], np.float32), "causal")
        return batch


def main(gpus: int = 0) -> None:
    # One CPU for each actor, and one for the tasks that prepare their batches: without it these would wait for ever.
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False)
    rng = np.random.default_rng(0)
    taps = (rng.standard_normal(4000) * np.exp(-np.arange(4000) / 800)).astype(np.float32)
    signals = rng.standard_normal((32, 8000)).astype(np.float32)
    data = ray.data.from_numpy(signals).repartition(4).map_batches(
        Reverb, fn_constructor_args=(taps,), batch_size=8, num_gpus=gpus, compute=ray.data.ActorPoolStrategy(size=2)
    )
    rows = data.take_all()
    want = {row.tobytes(): wet for row, wet in zip(signals, gpuconv.convolve(signals, taps, "causal"))}
    for row in rows:
        assert np.array_equal(row["wet"], want[np.asarray(row["data"], np.float32).tobytes()])
    print(f"2 actors convolved {len(rows)} signals")
    ray.shutdown()


if __name__ == "__main__":
    main()
