"""The package in one process with others that bring compiled libraries, imported before it or after it; and in a kernel of Jupyter."""

import importlib.util
import os
import subprocess
import sys

import pytest

import sptx

OURS = """
table = sptx.Table(1000, 8, "adagrad", lr=0.1, seed=1, device="cpu")
table.update([3, 99, 3], numpy.ones((3, 8), "float32"))
run = sptx.fit([["a", "b", "c"]] * 50, "run", dim=4, epochs=2, keys={"corpus.min_count": 1}, device="cpu", progress=False)
print(table.fetch([3]).tobytes().hex(), len(run.nearest("a", k=2)))
"""
THEIRS = {
    "torch": "x = torch.ones(64, 64, requires_grad=True); (x @ x).sum().backward(); assert x.grad[0, 0] == 128",
    "faiss": "rows = numpy.eye(4, dtype='float32'); index = faiss.IndexFlatIP(4); index.add(rows); assert index.search(rows, 1)[1][2, 0] == 2",
    "cupy": "assert cupy.__version__",
    "scipy": "import scipy.linalg; assert abs(scipy.linalg.det(numpy.eye(3)) - 1) < 1e-9",
    "pyarrow": "assert pyarrow.array([1, 2]).to_pylist() == [1, 2]"}


ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(os.path.dirname(os.path.abspath(sptx.__file__))),
                                                            *os.environ.get("PYTHONPATH", "").split(os.pathsep)])}


def in_a_process(place, *arguments):
    done = subprocess.run([sys.executable, *arguments], cwd=place, capture_output=True, text=True, timeout=200, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.torch if name == "torch" else []) for name in THEIRS])
@pytest.mark.parametrize("first", [True, False], ids=["before", "after"])
def test_another_library_changes_nothing(tmp_path, name, first):
    """Both work, and our results are those of a process without it. Each does its work before the other's, then again."""
    if importlib.util.find_spec(name) is None:
        pytest.skip("there is no %s" % name)
    before = ["import numpy", "import " + name, THEIRS[name]] if first else ["import numpy, sptx", OURS.replace('"run"', '"first"'), "import " + name]
    (tmp_path / "alone").mkdir()
    alone = in_a_process(tmp_path / "alone", "-c", "import numpy, sptx\n" + OURS)
    both = in_a_process(tmp_path, "-c", "\n".join([*before, "import sptx", OURS, THEIRS[name]]))
    assert both == alone * (1 if first else 2)


@pytest.mark.torch
@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_children_of_a_process_with_torch(tmp_path, way):
    """A child opens tables of its own, whichever way it was made."""
    (tmp_path / "main.py").write_text("""
import multiprocessing, numpy, torch, sptx

def child(queue):
    table = sptx.Table(10, 4, "sgd", lr=1.0, init="zeros", device="cpu")
    table.update([2], numpy.ones((1, 4), "float32"))
    queue.put(float(table.fetch([2])[0, 0]))

if __name__ == "__main__":
    parent = sptx.Table(10, 4, "sgd", init="zeros", device="cpu")
    (torch.ones(64, 64) @ torch.ones(64, 64)).sum()
    context = multiprocessing.get_context("%s")
    queue = context.Queue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    print(queue.get(timeout=60), parent.fetch([2])[0, 0])
    process.join()
""" % way)
    assert in_a_process(tmp_path, "main.py") == "-1.0 0.0\n"


def test_jupyter_interrupts_a_run(tmp_path):
    """The kernel's interrupt ends fit() with KeyboardInterrupt after a checkpoint, and the kernel lives on."""
    manager = pytest.importorskip("jupyter_client").manager
    pytest.importorskip("ipykernel")
    kernel, client = manager.start_new_kernel(cwd=str(tmp_path), env=ENVIRONMENT)
    try:
        said = []

        def output(message):
            content = message["content"]
            said.append(content.get("text") or content.get("ename") or "")
            if "%" in said[-1] and "lr" in said[-1] and not any("sent" == one for one in said):
                said.append("sent")
                kernel.interrupt_kernel()

        client.execute_interactive("""
import sptx
run = sptx.fit([["a", "b", "c", "d"]] * 20000, "run", dim=64, epochs=1000000, device="cpu", progress=True,
               keys={"corpus.min_count": 1, "train.report_seconds": 0.2})
""", output_hook=output, timeout=120)
        assert "sent" in said and "KeyboardInterrupt" in said, said[-5:]
        answers = []
        client.execute_interactive("print(len(sptx.Run('run').words))", timeout=60,
                                   output_hook=lambda message: answers.append(message["content"].get("text")))
        assert "4\n" in answers
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)
