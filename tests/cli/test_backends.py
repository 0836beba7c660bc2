"""A run that moves to the other backend in the middle ends where it would have ended, to the rounding."""
import signal

import numpy
import pytest

from conftest import STOP_KEYS, checkpoints, end, wait_for


def weights(sptx, run):
    return [numpy.load(sptx.checkpoint(run) / name)["weights"].astype(numpy.float64) for name in ("target.npy", "context.npy")]


@pytest.mark.parametrize("first, then", [("cpu", "cuda"), ("cuda", "cpu")])
def test_a_checkpoint_moves_between_backends(whole, first, then):
    sptx = whole
    if "auto       cuda" not in sptx("devices").stdout:
        pytest.skip("there is no GPU here to move to")
    config = sptx.config(**STOP_KEYS)
    process = sptx.start("train", config, f"--device.backend={first}")
    assert wait_for(lambda: checkpoints(sptx), process)
    process.send_signal(signal.SIGINT)
    end(process)
    assert sptx.tables() != sptx.tables("whole")
    sptx("train", config, "--resume", f"--device.backend={then}")
    for moved, stayed in zip(weights(sptx, "run"), weights(sptx, "whole")):
        assert numpy.linalg.norm(moved - stayed) < 0.01 * numpy.linalg.norm(stayed)
