"""Training from the command line: which files it leaves. Threads, kills and compressed corpora must change no byte."""
import bz2
import ctypes
import gzip
import json
import lzma
import os
import random
import re
import shutil
import signal

import numpy
import pytest

from conftest import FAULTS, STOP_KEYS, STOP_SENTENCES, checkpoints, end, lines_of_metrics, sentences, wait_for


def big(sptx, sentence_count=20000):
    """A corpus whose training takes some seconds."""
    sptx.path("corpus.txt").write_text("\n".join(sentences(sentence_count)) + "\n")


def test_what_a_run_leaves(trained):
    run = trained.path("run")
    assert {"config.ini", "vocab.tsv", "metrics.jsonl", "latest"} <= set(os.listdir(run))
    checkpoint = trained.checkpoint()
    assert {"target.npy", "context.npy", "state.ini"} <= set(os.listdir(checkpoint))
    rows = len((run / "vocab.tsv").read_text().splitlines())
    for name in ("target.npy", "context.npy"):
        weights = numpy.load(checkpoint / name, mmap_mode="r")["weights"]
        assert weights.shape == (rows, 16) and weights.dtype == numpy.float32
        assert numpy.isfinite(weights).all() and weights.any()
    for line in (run / "metrics.jsonl").read_text().splitlines():
        assert {"step", "epoch", "done", "loss", "loss_untrained", "lr"} <= set(json.loads(line))
    assert not [name for name in os.listdir(run) if "partial" in name]


def test_words_of_a_topic_are_near(trained):
    trained("train", trained.config(train={"epochs": "20"}, optimizer={"lr": "0.05"}), "--overwrite")
    lines = trained("nearest", "run", "t3w1", "--k=5").stdout.splitlines()
    assert len(lines) == 5
    for line in lines:
        word, score = line.split("\t")
        assert word.startswith("t3") and word != "t3w1" and -1 <= float(score) <= 1


def test_config_of_the_run_trains_the_same(trained):
    before = trained.tables()
    trained("train", "run/config.ini", "--run.dir=again")
    assert trained.tables("again") == before


def test_a_finished_run_is_not_overwritten(trained):
    before = trained.tables()
    said = trained.refuses("train", trained.config(train={"seed": "2"}))
    assert said == "'run' holds a finished run; --overwrite replaces it, run.dir = ... writes elsewhere"
    assert trained.tables() == before
    trained("train", trained.config(train={"seed": "2"}), "--overwrite")
    assert trained.tables() != before


def test_resume_of_a_finished_run_changes_nothing(trained):
    before = trained.tables()
    done = trained("train", "run.ini", "--resume")
    assert "'run' is finished already" in done.stderr
    assert trained.tables() == before


def test_threads_change_nothing(sptx):
    made = set()
    for threads in (1, 2, 3):
        sptx("train", sptx.config(device={"threads": threads}, run={"dir": f"run{threads}"}))
        made.add(sptx.tables(f"run{threads}"))
    assert len(made) == 1


@pytest.mark.parametrize("rule", ["adagrad", "adam", "rprop", "rowwise-adagrad"])
def test_threads_change_nothing_with_state(sptx, rule):
    made = set()
    for threads in (1, 3):
        sptx("train", sptx.config(device={"threads": threads}, run={"dir": f"run{threads}"}, optimizer={"rule": rule}))
        made.add(sptx.tables(f"run{threads}"))
    assert len(made) == 1


def compress_zst(data):
    zstd = ctypes.CDLL("libzstd.so.1")
    zstd.ZSTD_compressBound.restype = zstd.ZSTD_compress.restype = ctypes.c_size_t
    zstd.ZSTD_compressBound.argtypes = [ctypes.c_size_t]
    zstd.ZSTD_compress.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int]
    room = ctypes.create_string_buffer(zstd.ZSTD_compressBound(len(data)))
    size = zstd.ZSTD_compress(room, len(room), data, len(data), 3)
    return room.raw[:size]


def test_packed_corpora_train_the_same(sptx):
    plain = sptx.path("corpus.txt").read_bytes()
    half = plain.index(b"\n", len(plain) // 2) + 1
    packed = {
        "corpus.txt": plain,
        "corpus.gz": gzip.compress(plain),
        "members.gz": gzip.compress(plain[:half]) + gzip.compress(plain[half:]),
        "corpus.zst": compress_zst(plain),
        "corpus.xz": lzma.compress(plain),
        "streams.xz": lzma.compress(plain[:half]) + bytes(4) + lzma.compress(plain[half:]),
        "corpus.bz2": bz2.compress(plain),
        "streams.bz2": bz2.compress(plain[:half]) + bz2.compress(plain[half:]),
        "frames.zst": compress_zst(plain[:half]) + compress_zst(plain[half:]),
    }
    made = set()
    for name, data in packed.items():
        sptx.path(name).write_bytes(data)
        sptx("train", sptx.config(corpus={"path": name}, run={"dir": f"run-{name}"}))
        made.add(sptx.tables(f"run-{name}"))
    assert len(made) == 1


def test_crlf_trains_the_same(sptx):
    plain = sptx.path("corpus.txt").read_bytes()
    sptx("train", sptx.config())
    sptx.path("corpus.txt").write_bytes(plain.replace(b"\n", b"\r\n"))
    sptx("train", sptx.config(run={"dir": "crlf"}))
    assert sptx.tables() == sptx.tables("crlf")


def test_bytes_of_words_are_kept(sptx):
    words = [b"\xc3\xa9t\xc3\xa9", b"\xff\xfe", b"nul\x00in", "слово".encode(), b"x" * 100000]
    sptx.path("corpus.txt").write_bytes(b"\n".join(b" ".join(words) for _ in range(200)))
    sptx("train", sptx.config())
    found = {line.rsplit(b"\t", 1)[0] for line in sptx.path("run", "vocab.tsv").read_bytes().splitlines()}
    assert found == set(words)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_writes_a_checkpoint_and_resume_ends_the_same(whole, number):
    sptx = whole
    config = sptx.config(**{**STOP_KEYS, "run": {"checkpoint_every": "end"}})
    process = sptx.start("train", config)
    assert wait_for(lambda: lines_of_metrics(sptx) >= 3, process)
    process.send_signal(number)
    out, err = end(process)
    assert process.returncode == 1, err
    assert out == ""
    assert re.search(r"^sptx-w2v: stopped by a signal at step \d+, [\d.]+% done; checkpoint-\d+ is written, "
                     r"and sptx-w2v train run/config.ini --resume goes on from it$", err, re.M)
    assert sptx.checkpoint().is_dir()
    assert sptx.tables() != sptx.tables("whole")
    sptx("train", config, "--resume")
    assert sptx.tables() == sptx.tables("whole")


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.long), pytest.param(3, marks=pytest.mark.long),
                                  pytest.param(4, marks=pytest.mark.long), pytest.param(5, marks=pytest.mark.long)])
def test_kill_at_any_moment_and_resume_ends_the_same(whole, seed):
    sptx = whole
    config = sptx.config(**STOP_KEYS)
    rng = random.Random(seed)
    longest, killed = 0.7 * sptx.seconds, 0
    for attempt in range(6):
        process = sptx.start("train", config, *(["--resume"] if killed else ["--overwrite"]))
        if wait_for(lambda: False, process, rng.uniform(0.05, min(1.0, longest))) or process.poll() is not None:
            if killed:
                break
            # this time the machine was faster than in the whole run, so the run ended before the kill: tries again, earlier
            longest /= 2
            continue
        process.send_signal(signal.SIGKILL)
        end(process)
        killed += 1
    if process.poll() is None or process.returncode != 0:
        sptx("train", config, "--resume")
    assert killed >= 1
    assert sptx.tables() == sptx.tables("whole")
    left = [name for name in os.listdir(sptx.path("run")) if name.startswith("checkpoint-")]
    assert len(left) <= 2 and sorted(left) == sorted(checkpoints(sptx))


SHORT_KEYS = {"train": {"epochs": "0", "steps": "8"}, "run": {"checkpoint_every": "2 steps"}, "device": {"backend": "cpu"}}


def killed_at(kind, number):
    """Returns an environment in which a run is killed at its call `number` of this kind; 0: it is never killed. The calls are
    counted in the file `log`."""
    return failing(kind, number, "KILL")


def failing(kind, number, error):
    """Returns an environment in which the call `number` of this kind fails with this error."""
    return dict(os.environ, LD_PRELOAD=str(FAULTS), FAULT_SYNC="skip", FAULT_KIND=kind, FAULT_NUMBER=str(number),
                FAULT_ERROR=error, FAULT_LOG="log", ASAN_OPTIONS="verify_asan_link_order=0:detect_leaks=0")


@pytest.mark.parametrize("kind, left", [("rename", "checkpoint-4"), ("unlink", "checkpoint-4.partial")])
def test_killed_while_the_last_checkpoint_is_written_resume_leaves_what_a_whole_run_does(sptx, kind, left):
    """The run is killed at each of its last calls. Some of these are made after the last checkpoint has its name, when nothing is
    left to train, and before the older checkpoint is removed."""
    if not FAULTS.exists():
        pytest.skip(f"there is no {FAULTS.name} beside the program: make tests")
    config, found = sptx.config(**SHORT_KEYS), set()
    sptx("train", config, "--run.dir=whole", env=killed_at(kind, 0))
    calls = int(re.search(rf"^counted {kind} (\d+)$", sptx.path("log").read_text(), re.M)[1])
    for number in range(max(1, calls - 7), calls + 1):
        shutil.rmtree(sptx.path("run"), ignore_errors=True)
        assert sptx("train", config, env=killed_at(kind, number), expect=None).returncode == -signal.SIGKILL
        before = set(os.listdir(sptx.path("run")))
        done = sptx("train", config, "--resume")
        if "is finished already" in done.stderr:
            found |= before
        assert set(os.listdir(sptx.path("run"))) == set(os.listdir(sptx.path("whole")))
        assert sptx.checkpoint().name == "checkpoint-8" and sptx.tables() == sptx.tables("whole")
    assert left in found


@pytest.mark.skipif(not FAULTS.exists(), reason="make tests builds the library that makes calls fail")
def test_a_corpus_that_cannot_be_read_is_told_where_its_kind_decides_the_keys(sptx):
    """Whether lists have names is decided by the first bytes of the file, before anything else of it is read."""
    sptx.path("my.lists").write_text("a b c\nd b c\n" * 20)
    keys = ["--corpus.path=my.lists", "--corpus.format=lists"]
    assert sptx.refuses("train", *keys, env=failing("read", 1, "EIO")) == "cannot read 'my.lists': Input/output error"


@pytest.mark.skipif(not FAULTS.exists(), reason="make tests builds the library that makes calls fail")
def test_interrupted_calls_of_locks_and_file_numbers_are_made_again(sptx):
    config = sptx.config(**SHORT_KEYS)
    sptx("train", config, env=failing("lock", 0, "EINTR"))
    calls = int(re.search(r"^counted lock (\d+)$", sptx.path("log").read_text(), re.M)[1])
    wanted = sptx.tables()
    for number in range(1, calls + 1):
        sptx("train", config, "--overwrite=now", env=failing("lock", number, "EINTR"))
        assert sptx.tables() == wanted


def test_resume_of_a_finished_run_keeps_as_many_checkpoints_as_the_run_did(sptx):
    config = sptx.config(**SHORT_KEYS)
    sptx("train", config, "--run.keep=9")
    sptx("train", config, "--resume", "--run.keep=1")
    assert sorted(checkpoints(sptx)) == ["checkpoint-2", "checkpoint-4", "checkpoint-6", "checkpoint-8"]


def test_killed_before_the_first_checkpoint_starts_over_and_says_so(whole):
    sptx = whole
    config = sptx.config(**{**STOP_KEYS, "run": {"checkpoint_every": "end"}})
    process = sptx.start("train", config)
    assert wait_for(lambda: lines_of_metrics(sptx) >= 2, process)
    process.send_signal(signal.SIGKILL)
    end(process)
    assert not sptx.path("run", "latest").exists()
    done = sptx("train", config, "--resume")
    assert "'run' has no checkpoint yet: starting over\n" in done.stderr
    assert sptx.tables() == sptx.tables("whole")


def test_nohup_stays_nohup(whole):
    """A process that nohup started ignores SIGHUP, and must continue to do so."""
    sptx = whole
    process = sptx.start("train", sptx.config(**STOP_KEYS), preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    assert wait_for(lambda: lines_of_metrics(sptx) >= 3, process)
    process.send_signal(signal.SIGHUP)
    out, err = end(process)
    assert process.returncode == 0, err
    assert sptx.tables() == sptx.tables("whole")


@pytest.mark.parametrize("damage", ["empty", "cut", "lost"])
def test_a_run_whose_checkpoints_are_damaged_is_not_begun_over_unasked(trained, damage):
    state = trained.checkpoint() / "state.ini"
    if damage == "lost":
        state.unlink()
    else:
        state.write_text(state.read_text()[:20 if damage == "cut" else 0])
    before = {name: trained.path("run", name).read_bytes() for name in ("config.ini", "vocab.tsv", "metrics.jsonl", "latest")}
    for how in ([], ["--resume"]):
        said = trained.refuses("train", "run.ini", *how)
        assert said == ("'run' holds a run that had a checkpoint, as its 'latest' says, and none there is one now: put it back, or "
                        "replace the run by --overwrite")
        assert {name: trained.path("run", name).read_bytes() for name in before} == before
    trained("train", "run.ini", "--overwrite")


def truncate(path):
    path.write_bytes(path.read_bytes()[:-100])


def flip_a_bit(path):
    data = bytearray(path.read_bytes())
    data[len(data) * 2 // 3] ^= 4
    path.write_bytes(data)


@pytest.mark.parametrize("name", ["target.npy", "context.npy", "state.ini"])
@pytest.mark.parametrize("harm", [truncate, flip_a_bit, os.remove])
def test_a_broken_checkpoint_is_passed_over(killed, name, harm):
    sptx = killed
    broken = sptx.path("run", max(checkpoints(sptx), key=lambda found: int(found.split("-")[1])))
    harm(broken / name)
    done = sptx("train", "run.ini", "--resume")
    assert "warning" in done.stderr and broken.name in done.stderr
    assert sptx.tables() == sptx.tables("whole")


def test_resume_refuses_other_keys(killed):
    """Other keys are refused before the corpus is read, which may take long."""
    killed.path("run", "corpus.ids").unlink()
    for key, value in (("model.dim", "32"), ("train.batch", "64"), ("train.seed", "2")):
        said = killed.refuses("train", "run.ini", "--resume", f"--{key}={value}")
        assert said == f"'run' was begun with another {key}: --resume needs the same keys ('run/config.ini' has them)"
    assert not killed.path("run", "corpus.ids").exists()


def test_resume_names_the_key_that_was_set_and_not_one_that_follows(sptx):
    """negatives.count follows from train.loss, and comes before it in config.ini."""
    config = sptx.config(train={"steps": "1"}, negatives={"count": None})
    for first, then in (([], ["--train.loss=hierarchical"]), (["--train.loss=hierarchical"], [])):
        sptx("train", config, *first, "--overwrite")
        said = sptx.refuses("train", config, "--resume", *then)
        assert "'run' was begun with another train.loss: " in said if then else ", train.loss = hierarchical (logistic): " in said


def test_what_is_measured_within_an_epoch_names_the_step(sptx):
    config = sptx.config(train={"held_out": "0.1"})
    after = "^held out   loss .* after (.*)$"
    assert re.findall(after, sptx("train", config).stderr, re.M) == ["1 epoch", "2 epochs"]
    steps = 3 * int(sptx.checkpoint().name.split("-")[1]) // 4
    assert re.findall(after, sptx("train", config, f"--train.steps={steps}", "--overwrite").stderr, re.M) == ["1 epoch", f"step {steps}"]


def test_what_is_left_to_the_machine_is_taken_from_the_run(killed):
    """On this machine auto would choose another batch than on the one where the run began. The run keeps its batch."""
    sptx = killed
    config = sptx.config("auto.ini", **{**STOP_KEYS, "train": {**STOP_KEYS["train"], "batch": "auto"}})
    assert "\nbatch = 128\n" in sptx.path("run", "config.ini").read_text()
    sptx("train", config, "--run.dir=here")
    assert "\nbatch = 128\n" not in sptx.path("here", "config.ini").read_text()
    sptx("train", config, "--resume", "--memory.hot_rows=auto", "--memory.target=auto", "--device.threads=0")
    assert "\nbatch = 128\n" in sptx.path("run", "config.ini").read_text()
    assert sptx.tables() == sptx.tables("whole")


def test_resume_refuses_another_corpus(killed):
    sptx = killed
    sptx.path("corpus.txt").write_text("\n".join(sentences(STOP_SENTENCES, seed=2)) + "\n")
    said = sptx.refuses("train", "run.ini", "--resume")
    assert "vocab" in said or "corpus" in said


def shuffle_words(lines):
    """Changes the order of words in the last lines. The vocabulary, sorted by frequency and first occurrence, stays the same."""
    rng = random.Random(5)
    return lines[:-500] + [" ".join(rng.sample(line.split(), len(line.split()))) for line in lines[-500:]]


def join_lines(lines):
    return lines[:-500] + [" ".join(pair) for pair in zip(lines[-500::2], lines[-499::2])]


@pytest.mark.parametrize("change", [shuffle_words, join_lines])
def test_resume_refuses_the_same_words_in_another_order(killed, change):
    sptx = killed
    lines = sptx.path("corpus.txt").read_text().splitlines()
    sptx.path("corpus.txt").write_text("\n".join(change(lines)) + "\n")
    said = sptx.refuses("train", "run.ini", "--resume")
    assert re.fullmatch(r"'run/checkpoint-\d+' was trained on the same words in another order or other sentences: the corpus "
                        r"has changed since; --overwrite starts over", said)
    sptx.path("corpus.txt").write_text("\n".join(lines) + "\n")
    sptx("train", "run.ini", "--resume")
    assert sptx.tables() == sptx.tables("whole")


def write_state(checkpoint, text):
    """Writes a state.ini of this text, with its checksum as the last line."""
    xxhash = ctypes.CDLL("libxxhash.so.0")
    xxhash.XXH64.restype = ctypes.c_uint64
    xxhash.XXH64.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64]
    (checkpoint / "state.ini").write_bytes(text + b"state_xxh64 = %016x\n" % xxhash.XXH64(text, len(text), 0))


def test_a_run_of_text_goes_on_with_the_negatives_that_it_began_with(sptx):
    """In version 1.0 the default of negatives.per was pair. A run of that version must keep it."""
    config = sptx.config(negatives={"per": None}, optimizer={"schedule": "constant"})
    sptx("train", config, "--negatives.per=pair", "--run.dir=whole")
    sptx("train", config, "--negatives.per=pair", "--train.steps=20")
    sptx("train", config, "--resume", "--train.steps=0")
    assert sptx.tables() == sptx.tables("whole")
    said = sptx.refuses("train", config, "--resume", "--negatives.per=example", "--train.epochs=9")
    assert said.startswith("'run' was begun with another negatives.per: ")


def test_resume_takes_other_threads(killed):
    sptx = killed
    sptx("train", "run.ini", "--resume", "--device.threads=1")
    assert sptx.tables() == sptx.tables("whole")


@pytest.mark.parametrize("update", ["batch", "hogwild"])
def test_a_loss_that_is_no_number_stops_and_keeps_the_last_good_checkpoint(sptx, update):
    """Lock-free training may diverge within its first piece. Exact training writes at least one good checkpoint before it
    diverges."""
    config = sptx.config(optimizer={"lr": "1e6"}, examples={"subsample": "0"},
                         train={"update": update, "epochs": "200", "batch": "64"},
                         run={"checkpoint_every": "1 steps", "keep": "3"})
    done = sptx("train", config, expect=1)
    assert re.search(r"^sptx-w2v: the loss is (not a number|infinite|\S+ a dot product \(it began at \S+\)) at step \d+: the weights have diverged; lower "
                     r"optimizer\.lr \(now 1e\+06\)", done.stderr, re.M), done.stderr[-300:]
    assert done.stdout == ""
    if update == "batch" or sptx.path("run", "latest").exists():
        assert f"the last good checkpoint is 'run/{sptx.checkpoint().name}'" in done.stderr
        for name in ("target.npy", "context.npy"):
            assert numpy.isfinite(numpy.load(sptx.checkpoint() / name)["weights"]).all()


def no_json(constant):
    raise ValueError(constant)  # Python's JSON reader accepts NaN and Infinity, which JSON does not have


def test_metrics_of_a_loss_that_is_no_number_are_json(sptx):
    huge = "uniform -1e25 1e25"
    sptx.refuses("train", sptx.config(model={"target_init": huge, "context_init": huge}, examples={"subsample": "0"}))
    lines = [json.loads(line, parse_constant=no_json) for line in sptx.path("run", "metrics.jsonl").read_text().splitlines()]
    assert lines[0]["loss"] is None and lines[0]["loss_pair"] is None and lines[0]["lr"] == 0.05


def test_a_state_of_any_number_of_seconds_makes_json(killed):
    """The checksum is right, so the state is used."""
    sptx, checkpoint = killed, killed.checkpoint()
    text = (checkpoint / "state.ini").read_bytes()
    write_state(checkpoint, re.sub(rb"state_xxh64 = .*\n", b"", re.sub(rb"seconds = .*", b"seconds = 1e308", text)))
    sptx("train", "run.ini", "--resume")
    for line in sptx.path("run", "metrics.jsonl").read_bytes().splitlines():
        assert json.loads(line, parse_constant=no_json)["step"] >= 0
        assert all(32 <= byte < 127 for byte in line)


@pytest.mark.parametrize("every", ["end", "1 steps"])
def test_what_a_last_step_breaks_is_not_a_checkpoint(sptx, every):
    """The loss of a step is computed from the rows before it, so the effect of the last step is seen only in the tables."""
    config = sptx.config(model={"target_init": "uniform 1e38 1e38"}, optimizer={"lr": "1e3"}, train={"epochs": "0", "steps": "1"},
                         run={"checkpoint_every": every})
    said = sptx.refuses("train", config)
    assert re.match(r"row \d+ of the context table holds infinity or NaN at step 1: the weights have diverged; lower "
                    r"optimizer\.lr \(now 1000\).*; no checkpoint had been written$", said)
    assert not sptx.path("run", "latest").exists() and not checkpoints(sptx)


def test_diverging_windows_of_lists_stop_early_and_hear_of_all_ways_out(sptx):
    sptx("generate", "books", "--rows=2000", "--lists=3000", "--out=books.txt")
    said = sptx.refuses("train", sptx.config(corpus={"path": "books.txt", "format": "lists"}, examples={"mode": "window"},
                                             optimizer={"rule": "sgd", "lr": "0.05", "clip": "0"}, train={"batch": "8192"}))
    found = re.match(r"the loss is (\S+) a dot product \(it began at 0\.693\) at step \d+: the weights have diverged; lower "
                     r"optimizer\.lr \(now 0\.05\) or train\.batch, whose gradients are summed, or set optimizer\.clip .*, or "
                     r"train\.update = hogwild, which adds them one by one; no checkpoint had been written$", said)
    assert found, said
    assert 1e6 < float(found[1]) < 1e30
    sptx("train", "run.ini", "--train.update=hogwild", "--overwrite")


def test_what_a_run_does_beside_training_is_not_in_its_speed(sptx):
    """With this clock each write takes 1,000 s. Held-out examples are measured after each of 40 epochs, and a line is written
    about each."""
    if not FAULTS.exists():
        pytest.skip(f"there is no {FAULTS.name} beside the program: make tests")
    sptx("train", sptx.config(train={"epochs": "40", "held_out": "0.1", "report_seconds": "86400"}, run={"checkpoint_every": "end"}),
         env=dict(os.environ, LD_PRELOAD=str(FAULTS), FAULT_SYNC="skip", FAULT_CLOCK="1000",
                  ASAN_OPTIONS="verify_asan_link_order=0:detect_leaks=0"))
    held_out = sum("held_out_loss" in line for line in sptx.path("run", "metrics.jsonl").read_text().splitlines())
    state = (sptx.checkpoint() / "state.ini").read_text()
    assert held_out >= 40
    assert float(re.search(r"^seconds = (\S+)$", state, re.M)[1]) < 1000 * held_out / 2


def test_a_trace_tells_the_life_of_each_batch(sptx):
    """A stage (a place for one batch in the pipeline) gets its next batch only after all rows of the batch in it are written back."""
    done = sptx("train", sptx.config(train={"epochs": "1"}), env={**os.environ, "SPTX_TRACE": "1"})
    told = re.findall(r"^trace \d+\.\d{6} stage (\d+): (made|began|its rows)", done.stderr, re.M)
    assert len(told) >= 9 and len(told) % 3 == 0
    for stage in {stage for stage, _ in told}:
        life = [what for one, what in told if one == stage]
        assert life == ["made", "began", "its rows"] * (len(life) // 3)
    assert "trace" not in sptx("train", sptx.config(), "--overwrite").stderr


def test_the_held_out_loss_is_seen_while_training_and_at_the_end(sptx):
    done = sptx("train", sptx.config(train={"epochs": "20", "held_out": "0.1", "report_seconds": "0.01"}))
    lines = [json.loads(line) for line in sptx.path("run", "metrics.jsonl").read_text().splitlines()]
    measured = [f"{line['held_out_loss_pair']:.4f}" for line in lines if "held_out_loss" in line]
    live = re.findall(r"loss \d+\.\d+ a pair, held out (\d+\.\d+)  lr", done.stderr)
    assert live and abs(float(live[-1]) - float(measured[-1])) < 1e-3
    last = re.search(r"^held out   (\S+) a pair when last measured; (\S+) when first$", done.stderr, re.M)
    assert [f"{float(value):.3f}" for value in last.groups()] == [f"{float(value):.3f}" for value in (measured[-1], measured[0])]
    assert "held out" not in sptx("train", sptx.config(), "--overwrite").stderr


def test_metrics_that_cannot_be_written_end_no_run(whole):
    """A run does not end because lines of metrics cannot be written. A message says so at once, and at the end how many are
    missing."""
    sptx = whole
    metrics = sptx.path("run", "metrics.jsonl")
    process = sptx.start("train", sptx.config(**STOP_KEYS))
    assert wait_for(lambda: lines_of_metrics(sptx) >= 2, process)
    metrics.rename(sptx.path("kept"))
    while not metrics.is_dir():  # a line that is written in between makes the file again
        metrics.unlink(missing_ok=True)
        try:
            metrics.mkdir()
        except FileExistsError:
            pass
    out, err = end(process)
    assert process.returncode == 1 and out == ""
    assert err.count("warning: cannot write 'run/metrics.jsonl'") == 1
    assert re.search(r"sptx-w2v: the model is trained and written, but 'run/metrics\.jsonl' lacks \d+ lines?: cannot write "
                     r"'run/metrics\.jsonl': Is a directory\n$", err)
    assert sptx.tables() == sptx.tables("whole")
    metrics.rmdir()
    sptx.path("kept").rename(metrics)
    assert "is finished already" in sptx("train", "run.ini", "--resume").stderr


def test_hogwild_learns(sptx):
    big(sptx, 5000)
    sptx("train", sptx.config(train={"update": "hogwild", "epochs": "10", "batch": None}))
    words = [line.split("\t")[0] for line in sptx("nearest", "run", "t3w1", "--k=5").stdout.splitlines()]
    assert sum(word.startswith("t3") for word in words) >= 4


def test_hogwild_counts_the_examples_of_the_whole_run(sptx):
    """With a steep lr_decay only the first examples move rows. In the second epoch the count of examples must not begin again."""
    config = sptx.config(train={"update": "hogwild", "epochs": "1", "batch": None}, device={"threads": "1", "backend": "cpu"},
                         optimizer={"rule": "adagrad", "lr": "0.1", "lr_decay": "1000", "bias_correction": "global"})
    sptx("train", config)
    sptx("train", config, "--train.epochs=4", "--run.dir=longer")
    for table in ("target", "context"):
        short, longer = (numpy.load(sptx.checkpoint(run) / f"{table}.npy")["weights"] for run in ("run", "longer"))
        assert abs(longer - short).max() < 0.02 * abs(longer).max()


def test_hogwild_is_refused_for_rules_that_it_cannot_do(sptx):
    said = sptx.refuses("train", sptx.config(train={"update": "hogwild"}, optimizer={"rule": "adam"}))
    assert "hogwild" in said and "adam" in said


@pytest.mark.parametrize("format, lines", [
    ("lists", [f"user{i} " + " ".join(sentence.split()) for i, sentence in enumerate(sentences(800))]),
    ("adjacency", list(sentences(800))),
    ("pairs", [f"user{i},{word},{1 + i % 5}" for i, sentence in enumerate(sentences(800)) for word in sentence.split()]),
])
def test_each_format_trains(sptx, format, lines):
    sptx.path("corpus.txt").write_text("\n".join(lines) + "\n")
    sptx("train", sptx.config(corpus={"format": format}, train={"epochs": "3"}, device={"backend": "auto"}))
    names = {line.split("\t")[0] for line in sptx.path("run", "vocab.tsv").read_text().splitlines()}
    assert "t1w1" in names and "user1" not in names


def test_what_newcomers_type_to_resume(whole):
    whole("train", whole.config(**STOP_KEYS), "--train.epochs=1")
    wanted = "no corpus.path is given; sptx-w2v train run/config.ini --resume goes on with the run"
    assert whole.refuses("train", "--run.dir=run", "--resume").startswith(wanted)
    assert "the run in it is 'run/config.ini'" in whole.refuses("train", "run", "--resume")
    assert "the key 'model.dim=8' lacks its dashes; write --model.dim=8" in whole.refuses("train", "run.ini", "model.dim=8", code=2)


def test_keys_that_differ_are_whole(sptx):
    keys = ["--corpus.path=corpus.txt", "--corpus.format=triples", "--run.dir=run", "--model.dim=8", "--train.epochs=1"]
    sptx.path("corpus.txt").write_text("".join(f"a{i % 40}\tr\tb{i % 23}\n" for i in range(400)))
    sptx("train", *keys, "--examples.mode=walk")
    said = sptx.refuses("train", *keys, "--resume")
    listed = re.search(r"\(in brackets: now\): (.*): --resume needs the same", said)[1].split(", ")
    assert re.fullmatch(r"and \d+ others", listed.pop()) and all(re.fullmatch(r"\S+ = .* \(.*\)", key) for key in listed)
