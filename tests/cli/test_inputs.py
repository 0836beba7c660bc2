"""Files that a user passes to the program, in every form that they may have."""
import gzip
import os
import random
import re
import resource
import shutil
import subprocess
import threading

import pytest

from conftest import PROGRAM, end, warned

QUICK = {"timeout": 30}  # a short time limit, for a program that might wait for ever


# ---- pipes, devices, directories ----

@pytest.fixture
def asked(trained):
    """A finished run, and a pipe to which nobody writes."""
    os.mkfifo(trained.path("pipe"))
    return trained


def feed(path, text):
    """Writes a text to a pipe as soon as another process reads from it."""
    writer = threading.Thread(target=lambda: path.write_text(text), daemon=True)
    writer.start()
    return writer


def test_a_pipe_without_a_writer_is_refused(asked):
    """Three commands wait for the pipe at the same time."""
    asking = [asked.start(*arguments) for arguments in (
        ["config", "pipe"], ["evaluate", "run", "--pairs=pipe"], ["nearest", "run", "t1w0", "--titles=pipe"])]
    for process in asking:
        out, err = end(process)
        assert (process.returncode, out) == (1, "")
        assert err == "sptx-w2v: 'pipe' is a pipe that nothing has written to for 3 s\n"


@pytest.mark.parametrize("place", ["corpus.vocab", "latest", "corpus.ids", "corpus.vocab.tsv"])
def test_a_pipe_is_not_waited_for_where_a_file_of_ours_is_wanted(asked, place):
    if place == "corpus.vocab":
        said = asked.refuses("train", asked.config(corpus={"vocab": "pipe"}), "--run.dir=other", **QUICK)
        assert said == "'pipe' is not a plain file but a pipe"
        return
    path = asked.path("run", place)
    path.unlink()
    os.mkfifo(path)
    if place in ("corpus.ids", "corpus.vocab.tsv"):
        said = asked.refuses("train", asked.config(), "--overwrite", **QUICK)
        assert said.startswith(f"'run/{place}' is in the way: the encoded corpus has a file of this name, and this is none")
    else:
        asked("nearest", "run", "t1w0", **QUICK)


def test_what_is_written_to_a_pipe_is_read(asked):
    words = [line.split("\t")[0] for line in asked.path("run", "vocab.tsv").read_text().splitlines()]
    pairs = "".join(f"{words[i]} {words[i + 1]} {i}\n" for i in range(40))
    asked.path("pairs").write_text(pairs)
    wanted = asked("evaluate", "run", "--pairs=pairs").stdout
    writer = feed(asked.path("pipe"), pairs)
    assert asked("evaluate", "run", "--pairs=pipe", **QUICK).stdout == wanted.replace("pairs", "pipe")
    writer.join()
    asked.config("file.ini", model={"dim": "77"})
    writer = feed(asked.path("pipe"), asked.path("file.ini").read_text())
    assert "\ndim = 77\n" in asked("config", "pipe", **QUICK).stdout
    writer.join()


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash")
def test_process_substitution(asked):
    asked.path("titles").write_text("t1w0\tThe first\n")
    done = subprocess.run(["bash", "-c", '"$0" nearest run t1w0 --k=1 --among=context --titles=<(sleep 1; cat titles)',
                           PROGRAM], cwd=asked.directory, capture_output=True,
                          text=True, **QUICK)
    assert done.returncode == 0 and done.stdout.count("\t") == 2, done.stderr


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "run"])
def test_devices_and_directories_are_refused(asked, path):
    kind = "a directory" if path == "run" else "a device"
    for arguments in (["config", path], ["evaluate", "run", f"--pairs={path}"], ["nearest", "run", "t1w0", f"--titles={path}"],
                      ["train", asked.config(corpus={"vocab": path}), "--run.dir=other"]):
        said = f"'{path}' is not a plain file but {kind}"
        if arguments == ["config", "run"]:
            said = "'run' is a directory, and the configuration of the run in it is 'run/config.ini': write that instead"
        assert asked.refuses(*arguments, **QUICK) == said


# ---- configurations ----

def test_a_configuration_of_an_old_mac_is_read(sptx):
    sptx.config("unix.ini", model={"dim": "7"})
    sptx.path("mac.ini").write_bytes(sptx.path("unix.ini").read_bytes().replace(b"\n", b"\r"))
    assert sptx("config", "mac.ini").stdout.replace("/mac", "/unix") == sptx("config", "unix.ini").stdout


def test_a_configuration_too_long_to_be_one(sptx):
    with open(sptx.path("big.ini"), "wb") as out:
        out.truncate((16 << 20) + 1)
    assert sptx.refuses("config", "big.ini") == "'big.ini' is too long to be read: it has more than 16777216 bytes"
    line = b"[corpus]\npath = " + b"x" * ((16 << 20) - 16)
    sptx.path("long.ini").write_bytes(line)
    assert len(line) == 16 << 20
    assert len(sptx("config", "long.ini").stdout) > 16 << 20
    sptx.path("wrong.ini").write_bytes(line.replace(b"path", b"apth"))
    assert sptx.refuses("config", "wrong.ini") == "wrong.ini line 2: [corpus] has no key 'apth'; did you mean 'path'?"


@pytest.mark.parametrize("side", ["target", "context"])
@pytest.mark.parametrize("law, reach", [
    ("uniform 1e39 1e39", "1e+39"), ("uniform -3.5e38 0", "3.5e+38"), ("normal 0 1e38", "6.7e+38"), ("normal 1e300 1", "1e+300")])
def test_first_values_that_float32_cannot_hold(sptx, side, law, reach):
    said = sptx.refuses("train", sptx.config(model={f"{side}_init": law}))
    assert said == f"model.{side}_init = '{law}' draws numbers up to {reach}, and float32 ends at 3.4e+38"
    assert not sptx.path("run").exists()


# ---- a run without a file ----

def test_keys_alone_train(sptx):
    keys = ["--corpus.path=corpus.txt", "--corpus.min_count=1", "--model.dim=8", "--train.epochs=1", "--device.backend=cpu"]
    sptx("plan", *keys)
    sptx("train", *keys)
    assert sptx("nearest", "runs/corpus", "t1w0", "--k=3").stdout.count("\n") == 3
    assert sptx.refuses("train", *keys).startswith("'runs/corpus' holds a finished run")
    sptx("train", *keys, "--run.dir=own")
    assert sptx.path("own", "latest").exists()


def test_a_configuration_from_a_pipe_has_no_name(sptx):
    sptx.config("file.ini", run={"dir": None})
    text = sptx.path("file.ini").read_text()
    os.mkfifo(sptx.path("63"))
    writer = feed(sptx.path("63"), text)
    assert "\ndir = runs/corpus\n" in sptx("config", "63", **QUICK).stdout
    writer.join()
    assert "\ndir = runs/file\n" in sptx("config", "file.ini").stdout


# ---- pairs as people have them ----

PAIRS = [f"{user},{item},{1 + (user + item) % 5}" for user in range(80) for item in range(user % 7, user % 7 + 9)]


def train_pairs(sptx, lines, *settings, run="run"):
    text = lines if isinstance(lines, bytes) else "".join(f"{line}\n" for line in lines).encode()
    sptx.path("pairs.csv").write_bytes(text)
    config = sptx.config(corpus={"path": "pairs.csv", "format": "pairs"})
    return sptx("train", config, f"--run.dir={run}", "--overwrite", *settings)


def test_a_header_is_left_out_and_said(sptx):
    assert "no header" in train_pairs(sptx, PAIRS, run="wanted").stderr
    wanted = sptx.tables("wanted")
    for header in ("user_id,book_id,rating", "User ID,Book ID,My rating", "\ufeffuserId,movieId,rating", "\n\nuser,item,stars"):
        done = train_pairs(sptx, [header, *PAIRS])
        shown = header.strip("\ufeff\n")
        who, what, rating = shown.split(",")
        said = f"columns    list = {who}, item = {what.strip()}, rating = {rating.strip()}; commas, a header\n"
        # the line is printed once, though the file is read twice
        assert done.stderr.count("columns    ") == done.stderr.count(said) == 1
        assert sptx.tables() == wanted
    without = [line.rsplit(",", 1)[0] for line in PAIRS]
    train_pairs(sptx, ["user_id,item_id", *without])
    assert sptx.tables() == wanted
    train_pairs(sptx, ["some,line", *PAIRS], "--corpus.header=yes")
    assert sptx.tables() == wanted
    done = train_pairs(sptx, ["user_id,item_id", *without], "--corpus.header=no")
    assert "no header" in done.stderr
    assert "item_id" in sptx.path("run", "vocab.tsv").read_text()


def test_an_old_macs_lines_are_read_in_every_format(sptx):
    unix = "\n".join(PAIRS).encode()
    for form in ("pairs", "lists", "adjacency", "text"):
        for name, ends in (("lf", b"\n"), ("cr", b"\r"), ("crlf", b"\r\n")):
            train_pairs(sptx, unix.replace(b"\n", ends).replace(b",", b"," if form == "pairs" else b" "),
                        f"--corpus.format={form}", f"--examples.positives={'auto' if form == 'text' else 1}", run=name)
        assert sptx.tables("cr") == sptx.tables("lf") == sptx.tables("crlf")


@pytest.mark.parametrize("settings, sentence", [
    (["--corpus.format=text", "--corpus.header=yes"],
     "corpus.header = yes is for rows of fields (lists, adjacency, pairs, graph), and corpus.format is text"),
    (["--corpus.header=no"], "'pairs.csv' line 1: the rating 'rating' is not a number; where the line names the columns, set "
                             "corpus.header = yes"),
    (["--corpus.format=lists", "--corpus.columns=1,2"],
     "corpus.columns = 1,2 needs corpus.format = pairs or graph or documents or triples, whose lines have columns, and it is lists"),
    (["--corpus.names=no"], "corpus.names = no needs corpus.format = lists or documents, and it is pairs"),
    (["--corpus.columns=user,thing"], "'pairs.csv': no column of its header is called 'thing' (corpus.columns): user,item,rating")])
def test_wrong_headers(sptx, settings, sentence):
    sptx.path("pairs.csv").write_text("user,item,rating\n1,2,3\n4,5,6\n")
    said = sptx.refuses("train", sptx.config(corpus={"path": "pairs.csv", "format": "pairs"}), *settings)
    assert said == sentence


def test_an_encoded_corpus_is_that_of_its_header_key(sptx):
    train_pairs(sptx, ["user,item", *(line.rsplit(",", 1)[0] for line in PAIRS)])
    assert "(encoded before)" in sptx("train", "run.ini", "--overwrite").stderr
    assert "(encoded before)" not in sptx("train", "run.ini", "--overwrite", "--corpus.header=no").stderr


# ---- held-out lists ----

def as_lists(lines, least):
    lists = {}
    for line in lines:
        name, item, rating = line.split(",")
        if int(rating) >= least:
            lists.setdefault(name, []).append(item)
    return "".join(f"{name} {' '.join(items)}\n" for name, items in lists.items())


def test_held_out_lists_are_read_as_the_runs_corpus_was(sptx):
    """Ratings are not read as items, and pairs rated below corpus.min_rating are left out."""
    train, held_out = PAIRS[::2], PAIRS[1::2]
    for name, lines in (("train", train), ("held", held_out)):
        sptx.path(f"{name}.csv").write_text("\n".join(["user,item,rating", *lines]))
        sptx.path(f"{name}.csv.gz").write_bytes(gzip.compress(sptx.path(f"{name}.csv").read_bytes()))
        for least in (1, 3):
            sptx.path(f"{name}.{least}.txt").write_text(as_lists(lines, least))
    for least, settings in ((1, []), (3, ["--corpus.min_rating=3"])):
        sptx("train", sptx.config(corpus={"path": "train.csv", "format": "pairs"}), "--overwrite",
             "--examples.positives=1", *settings)
        wanted = sptx("evaluate", "run", f"--train=train.{least}.txt", f"--held-out=held.{least}.txt", "--k=5",
                      "--corpus.format=lists").stdout
        assert re.match(r"recall@5 0\.\d+ .* unknown \d held-out \d+ trained 0 cold \d+ without-row \d+\n", wanted)
        for ending in ("csv", "csv.gz"):
            assert sptx("evaluate", "run", f"--train=train.{ending}", f"--held-out=held.{ending}", "--k=5").stdout == wanted
    everything = sptx("evaluate", "run", "--train=train.csv", "--held-out=held.csv", "--k=5", "--corpus.min_rating=none").stdout
    assert everything != wanted
    said = sptx.refuses("evaluate", "run", "--train=train.1.txt", "--held-out=held.1.txt", "--format=pairs")
    assert re.search(r"held\.1\.txt' line \d+: ", said)


def test_lists_of_a_run_on_text_are_lists(trained):
    words = [line.split("\t")[0] for line in trained.path("run", "vocab.tsv").read_text().splitlines()]
    trained.path("train.txt").write_text(f"u1 {words[0]} {words[1]}\n")
    trained.path("held.txt").write_text(f"u1 {words[2]} unheard\n")
    assert trained("evaluate", "run", "--train=train.txt", "--held-out=held.txt").stdout.endswith(" lists 1 unknown 1 held-out 2 trained 0 cold 0\n")
    trained.path("run", "config.ini").unlink()
    assert "run/config.ini" in trained.refuses("evaluate", "run", "--train=train.txt", "--held-out=held.txt")


# ---- questions that cannot be answered ----

def test_a_file_that_judges_nothing_is_a_failure(trained):
    words = [line.split("\t")[0] for line in trained.path("run", "vocab.tsv").read_text().splitlines()]
    trained.path("good.txt").write_text("".join(f"{words[i]} {words[i + 1]} {i % 7}\n" for i in range(30)))
    for name, text in (("empty", ""), ("short", "a,b\nc,d\n"), ("unknown", "un heard 1\nof words 2\n"),
                       ("one", f"{words[0]} {words[1]} 1\n")):
        trained.path(name).write_text(text)
        done = trained("evaluate", "run", f"--pairs={name}", "--pairs=good.txt", expect=1)
        assert re.fullmatch(r"good rho -?0\.\d+ covered 30/30\n", done.stdout)  # the remaining lines are judged
        assert warned(done).startswith("sptx-w2v: ") and f"'{name}'" in warned(done) and warned(done).count("\n") == 1
        assert f"'{name}'" in trained.refuses("evaluate", "run", f"--pairs={name}")
    for name, text in (("empty", ""), ("unknown", "un heard of words\n")):
        trained.path(name).write_text(text)
        assert f"'{name}'" in trained.refuses("evaluate", "run", f"--analogies={name}")


def test_several_files_of_any_measure_are_judged_in_turn(trained):
    words = [line.split("\t")[0] for line in trained.path("run", "vocab.tsv").read_text().splitlines()][:8]
    for name, halves in (("one.txt", 2), ("two.txt", 3)):
        trained.path(name).write_text("".join(f"{word} l{i % halves}\n" for i, word in enumerate(words)))
    once = [trained("evaluate", "run", f"--labels={name}").stdout for name in ("one.txt", "two.txt")]
    assert trained("evaluate", "run", "--labels=one.txt", "--labels=two.txt", "--groups=one.txt", "--met=1").stdout.startswith(
        trained("evaluate", "run", "--groups=one.txt", "--met=1").stdout + "".join(once))


# ---- lists that are too short ----

@pytest.mark.parametrize("form", ["lists", "pairs", "adjacency"])
def test_lists_that_are_left_out_are_counted(sptx, form):
    """Makes 1,000 lists of 1 to 8 items each. A line of adjacency with one item is too short and is left out."""
    rng = random.Random(5)
    lists = [[f"i{rng.randrange(200)}" for _ in range(length)] for length in range(1, 9) for _ in range(1000)]
    if form == "pairs":
        lines = [f"u{number},{item}" for number, items in enumerate(lists) for item in items]
    else:
        lines = [" ".join(([f"u{number}"] if form == "lists" else []) + items) for number, items in enumerate(lists)]
    sptx.path("lists.txt").write_text("\n".join(lines) + "\n")
    known = 7000 if form == "adjacency" else 8000
    ones = 0 if form == "adjacency" else 1000

    mode = "adjacency" if form == "adjacency" else "list"

    def said(*settings):
        done = sptx("train", sptx.config(corpus={"path": "lists.txt", "format": form}, examples={"mode": mode},
                                         train={"epochs": "0", "steps": "2"}), "--overwrite", *settings)
        return [line for line in done.stderr.splitlines() if line.startswith("left out ")]

    def left_out(count, least, way_out=""):
        lines = "lines" if form == "adjacency" else "lists"
        return [f"left out   {count:,} of {known:,} {lines}, which have fewer than {least} items{way_out}"] if count else []

    way_out = " (examples.positives = {}; examples.short = repeat trains those of two)"
    assert said("--examples.short=skip", "--examples.positives=4") == left_out(3000 + ones, 5, way_out.format(4))
    assert said("--examples.short=skip", "--examples.positives=7") == left_out(6000 + ones, 8, way_out.format(7))
    assert said("--examples.short=skip", "--examples.positives=1") == left_out(ones, 2)
    for settings in (["--examples.short=repeat"], ["--examples.positives=0"], ["--examples.mode=window"]):
        assert said(*settings) == left_out(ones, 2)
    if form != "adjacency":
        assert said("--examples.mode=user") == []
        way_out = way_out.replace("two", "one")
        assert said("--examples.mode=user", "--examples.short=skip", "--examples.positives=4") == left_out(3000, 4, way_out.format(4))


def test_text_is_not_told_of_short_sentences(sptx):
    assert "left out" not in sptx("train", sptx.config(examples={"window": "2"})).stderr


# ---- little memory ----

@pytest.mark.parametrize("mebibytes", [6, 8, 12, 16, 24, 48, 96, 200, 400])
def test_little_memory_is_a_sentence_and_never_a_hang(trained, mebibytes):
    """Exit code 127: the system cannot load the program's libraries. If not even the program's file fits, the system kills the
    process before its first instruction."""
    size = os.path.getsize(os.environ.get("SPTX_BIN", "build/sptx-w2v")) >> 20
    if mebibytes < size + 8:
        pytest.skip(f"the program's file alone has {size} MiB")
    trained.path("pairs").write_text("t1w0 t1w1 1\nt1w0 t2w1 2\nt3w0 t3w1 3\n")
    trained.path("analogies").write_text("t1w0 t1w1 t2w0 t2w1\n")
    limit = mebibytes << 20
    on_cpu = "--device.backend=cpu"  # on a GPU the program needs more address space than any of these limits allows
    for arguments in (["--version"], ["config"], ["nearest", "run", "t1w0", on_cpu],
                      ["evaluate", "run", "--pairs=pairs", "--analogies=analogies", on_cpu],
                      ["train", "run.ini", "--run.dir=other", "--run.retry_seconds=0", on_cpu]):
        done = trained(*arguments, expect=None, **QUICK,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
        assert done.returncode in (0, 1, 127), (arguments, done.returncode, done.stderr[-300:])
        assert done.returncode != 1 or done.stderr.splitlines()[-1].startswith("sptx-w2v: "), done.stderr[-300:]
        assert done.returncode == 0 or mebibytes < 200 + 2 * size, done.stderr[-300:]
