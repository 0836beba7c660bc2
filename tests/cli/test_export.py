"""Exported files have exactly the numbers of the tables, as other programs read them."""
import os
import re

import numpy
import pytest

from conftest import FAULTS, sentences
from test_train import failing

gensim_models = pytest.importorskip("gensim.models")


def weights(trained, name="target.npy"):
    return numpy.load(trained.checkpoint() / name)["weights"]


def words(trained):
    return [line.split("\t")[0] for line in trained.path("run", "vocab.tsv").read_text().splitlines()]


# Options with which gensim reads each format that contains words.
WITH_WORDS = {"word2vec-bin": {"binary": True}, "word2vec-text": {}, "glove-text": {"no_header": True}}


def load_words(path, format):
    return gensim_models.KeyedVectors.load_word2vec_format(str(path), **WITH_WORDS[format])


@pytest.mark.parametrize("format", WITH_WORDS)
def test_gensim_loads_it(trained, format):
    done = trained("export", "run", f"--format={format}", "--out=out")
    assert done.stdout == ""
    loaded = load_words(trained.path("out"), format)
    assert loaded.index_to_key == words(trained)
    assert loaded.vectors.tobytes() == weights(trained).tobytes()


def read_fvecs(path, table):
    vecs_io = pytest.importorskip("faiss.contrib.vecs_io")
    return vecs_io.fvecs_read(str(path))


def read_fvecs_by_hand(path, table):
    words_of_four = numpy.fromfile(path, "<i4")
    rows = words_of_four.reshape(-1, 1 + words_of_four[0])
    assert (rows[:, 0] == rows[0, 0]).all()
    return rows[:, 1:].copy().view("<f4")


def read_fbin(path, table):
    rows, columns = numpy.fromfile(path, "<u4", count=2)
    return numpy.memmap(path, "<f4", "r", offset=8, shape=(rows, columns))


def read_safetensors(path, table):
    tensors = pytest.importorskip("safetensors.numpy").load_file(path)
    assert list(tensors) == [table]
    return tensors[table]


def read_projector(path, table):
    return numpy.loadtxt(path, dtype=numpy.float32, delimiter="\t", ndmin=2)


@pytest.mark.parametrize("table", ["target", "context", "sum", "normsum"])
@pytest.mark.parametrize("format, read", [("fvecs", read_fvecs), ("fvecs", read_fvecs_by_hand), ("fbin", read_fbin),
                                          ("safetensors", read_safetensors), ("projector", read_projector)])
def test_rows_as_in_npy(trained, format, read, table):
    trained("export", "run", "--format=npy", "--out=wanted.npy", f"--table={table}")
    done = trained("export", "run", f"--format={format}", "--out=out", f"--table={table}")
    assert done.stdout == ""
    wanted, got = numpy.load(trained.path("wanted.npy")), read(trained.path("out"), table)
    assert got.shape == wanted.shape and got.dtype == numpy.float32
    assert got.tobytes() == wanted.tobytes()


def unit(rows):
    return rows / numpy.maximum(numpy.linalg.norm(rows.astype(float), axis=1, keepdims=True), 1e-12)


def export(trained, name, *options):
    """Exports float32 rows, then what the options ask for. Returns the float32 rows, the file's array or path, and what was said."""
    trained("export", "run", "--format=npy", "--out=whole.npy")
    done = trained("export", "run", f"--out={name}", *options)
    path = trained.path(name)
    return numpy.load(trained.path("whole.npy")), numpy.load(path) if name.endswith(".npy") else path, done.stderr


def test_int8_rows_and_their_scales(trained):
    whole, rows, said = export(trained, "v.npy", "--format=npy", "--type=int8")
    scales = numpy.load(trained.path("v.npy.scales.npy"))
    assert rows.dtype == numpy.int8 and rows.shape == whole.shape and scales.shape == (len(whole), 1)
    assert (rows == numpy.rint(whole / scales)).all() and (abs(rows).max(1) == 127).all()
    assert float(re.search(r"recall@10 (\S+):", said).group(1)) > 0.9
    load_file = pytest.importorskip("safetensors.numpy").load_file
    trained("export", "run", "--format=safetensors", "--type=int8", "--out=v.safetensors")
    tensors = load_file(trained.path("v.safetensors"))
    assert (tensors["target"] == rows).all() and (tensors["scales"] == scales).all() and len(tensors) == 2


def test_bytes_of_one_scale(trained):
    whole, path, _ = export(trained, "v.i8bin", "--format=i8bin")
    assert numpy.fromfile(path, "<u4", count=2).tolist() == list(whole.shape)
    signed = numpy.fromfile(path, numpy.int8, offset=8).reshape(whole.shape)
    assert abs(signed).max() == 127 and abs(signed - unit(whole) / abs(unit(whole)).max() * 127).max() < 0.501
    _, path, _ = export(trained, "v.u8bin", "--format=u8bin")
    assert (numpy.fromfile(path, numpy.uint8, offset=8).reshape(whole.shape) == signed.astype(int) + 128).all()
    _, path, _ = export(trained, "v.bvecs", "--format=bvecs")
    rows = numpy.fromfile(path, numpy.uint8).reshape(len(whole), 4 + whole.shape[1])
    assert (rows[:, :4].copy().view("<i4") == whole.shape[1]).all() and (rows[:, 4:] == signed.astype(int) + 128).all()


@pytest.mark.parametrize("columns", [16, 6, 100])
def test_bits(trained, columns):
    whole, rows, said = export(trained, "v.npy", "--format=npy", "--type=binary", f"--columns={columns}")
    turned = unit(whole) @ numpy.load(trained.path("v.npy.rotation.npy"))
    wanted, mean = turned - turned.mean(0), numpy.load(trained.path("v.npy.mean.npy"))
    assert mean.shape == (1, columns) and abs(mean - turned.mean(0)).max() < 1e-6
    assert rows.dtype == numpy.uint8 and rows.shape == (len(whole), (columns + 7) // 8)
    bits = numpy.unpackbits(rows, axis=1)
    assert ((bits[:, :columns] == (wanted > 0)) | (abs(wanted) < 1e-6)).all() and not bits[:, columns:].any()
    assert len(re.findall("recall@10", said)) == 2
    _, path, _ = export(trained, "v.u8bin", "--format=u8bin", "--type=binary", f"--columns={columns}")
    assert path.read_bytes()[8:] == rows.tobytes()


def test_fewer_columns_are_the_best_ones(trained):
    whole, rows, said = export(trained, "v.npy", "--format=npy", "--columns=5")
    rotation = numpy.load(trained.path("v.npy.rotation.npy"))
    assert rotation.shape == (whole.shape[1], 5) and abs(rotation.T @ rotation - numpy.eye(5)).max() < 1e-5
    assert numpy.allclose(rows, whole @ rotation, atol=1e-5)
    best = numpy.linalg.svd(unit(whole), full_matrices=False)[1][:5]
    assert numpy.linalg.norm(unit(whole) @ rotation) == pytest.approx(numpy.linalg.norm(best), rel=1e-5)
    loaded = export(trained, "v.bin", "--format=word2vec-bin", "--columns=5")[1]
    assert load_words(loaded, "word2vec-bin").vectors.tobytes() == rows.tobytes()


def test_nearest_answers_from_smaller_rows(trained):
    whole, rows, _ = export(trained, "v.npy", "--format=npy", "--type=int8")
    whole, rows = unit(whole), unit(rows * numpy.load(trained.path("v.npy.scales.npy")))
    names = words(trained)
    scores = rows @ whole[3]
    scores[3] = -9
    lines = [line.split("\t") for line in trained("nearest", "run", names[3], "--type=int8", "--k=5").stdout.splitlines()]
    assert [word for word, _ in lines] == [names[i] for i in numpy.argsort(-scores)[:5]]
    assert abs(float(lines[0][1]) - scores.max()) < 1e-5
    assert len(trained("nearest", "run", names[3], "--type=binary", "--columns=64", "--k=5").stdout.splitlines()) == 5
    assert "the metric is dot" in trained.refuses("nearest", "run", names[3], "--type=int8", "--metric=dot", code=2)


@pytest.mark.parametrize("options, said", [
    (["--format=word2vec-bin", "--type=int8"], "--type=int8 is not for word2vec-bin, which can hold f32"),
    (["--format=bvecs", "--type=f32"], "--type=f32 is not for bvecs, which can hold uint8 or binary"),
    (["--format=npy", "--type=int8", "--columns=17"], "columns = 17 is more than the 16 columns of 'run', which only binary can have"),
    (["--format=npy", "--type=binary", "--columns=2000"],
     "columns = 2000 of the 16 of 'run': rows are turned to new axes for at most 1024 of either"),
    (["--format=fasttext", "--columns=4"], "--columns is not for fasttext, which cannot hold rows of fewer columns")])
def test_what_does_not_go_together(trained, options, said):
    assert trained.refuses("export", "run", "--out=x", *options, code=2) == said
    assert not list(trained.directory.glob("x*"))


def test_safetensors_numbers_are_aligned(trained):
    trained("export", "run", "--format=safetensors", "--out=out")
    assert int.from_bytes(trained.path("out").read_bytes()[:8], "little") % 8 == 0


def test_projector_metadata(trained):
    trained("export", "run", "--format=projector", "--out=vectors.tsv")
    assert trained.path("vectors.tsv.metadata.tsv").read_text() == \
        "word\tcount\n" + trained.path("run", "vocab.tsv").read_text()
    assert sorted(path.name for path in trained.directory.glob("vectors*")) == ["vectors.tsv", "vectors.tsv.metadata.tsv"]


def test_a_row_of_zeros_stays_zeros(sptx):
    """After a single step, contexts that were in no batch still have their first values, zeros."""
    sptx("train", sptx.config(train={"steps": "1", "batch": "16"}))
    target, context = weights(sptx), weights(sptx, "context.npy")
    zeros = ~context.any(axis=1)
    assert 0 < zeros.sum() < len(zeros)
    sptx("export", "run", "--format=npy", "--out=normsum.npy", "--table=normsum")
    normsum = numpy.load(sptx.path("normsum.npy"))
    assert numpy.isfinite(normsum).all()
    assert numpy.abs(numpy.linalg.norm(normsum[zeros], axis=1) - 1).max() < 1e-6


def test_npy(trained):
    trained("export", "run", "--format=npy", "--out=out.npy")
    assert numpy.load(trained.path("out.npy")).tobytes() == weights(trained).tobytes()


def test_a_checkpoint_is_exported_as_its_run(trained):
    trained("export", "run", "--format=npy", "--out=a.npy")
    trained("export", trained.checkpoint(), "--format=npy", "--out=b.npy")
    assert trained.path("a.npy").read_bytes() == trained.path("b.npy").read_bytes()


def test_other_tables(trained):
    target, context = weights(trained), weights(trained, "context.npy")
    made = {}
    for table in ("target", "context", "sum", "normsum"):
        trained("export", "run", "--format=npy", f"--out={table}.npy", f"--table={table}")
        made[table] = numpy.load(trained.path(f"{table}.npy"))
    assert (made["target"] == target).all() and (made["context"] == context).all()
    assert (made["sum"] == target + context).all()

    def unit(rows):
        lengths = numpy.linalg.norm(rows.astype(float), axis=1, keepdims=True)
        return rows / numpy.where(lengths > 0, lengths, 1)
    assert numpy.abs(made["normsum"] - (unit(target) + unit(context))).max() < 1e-6


def test_words_of_any_bytes_export(sptx):
    line = "\u00e9t\u00e9 \u0441\u043b\u043e\u0432\u043e \u65e5\u672c x\u00ady " + "long" * 500
    sptx.path("corpus.txt").write_text("\n".join([line] * 200), encoding="utf-8")
    sptx("train", sptx.config())
    for format in WITH_WORDS:
        sptx("export", "run", f"--format={format}", "--out=out")
        loaded = load_words(sptx.path("out"), format)
        assert set(loaded.index_to_key) == set(line.split())
        assert loaded.vectors.tobytes() == weights(sptx).tobytes()


def test_nearest_agrees_with_numpy(trained):
    rows = weights(trained).astype(numpy.float64)
    rows /= numpy.linalg.norm(rows, axis=1, keepdims=True)
    names = words(trained)
    query = names.index("t2w2")
    scores = rows @ rows[query]
    scores[query] = -9
    best = [names[i] for i in numpy.argsort(-scores)[:10]]
    lines = [line.split("\t") for line in trained("nearest", "run", "t2w2").stdout.splitlines()]
    assert [word for word, _ in lines] == best
    for (_, score), wanted in zip(lines, sorted(scores, reverse=True)):
        assert abs(float(score) - wanted) < 1e-4


def test_gensim_agrees_on_an_analogy(trained):
    trained("export", "run", "--format=word2vec-bin", "--out=out")
    loaded = load_words(trained.path("out"), "word2vec-bin")
    wanted = [word for word, _ in loaded.most_similar(positive=["t1w2", "t2w1"], negative=["t1w1"], topn=5)]
    lines = trained("analogy", "run", "t1w1", "t1w2", "t2w1", "--k=5").stdout.splitlines()
    assert [line.split("\t")[0] for line in lines] == wanted


def held_out(trained, train, held, k):
    """Computes recall@k and NDCG@k of held-out items directly from their definitions."""
    rows = weights(trained).astype(numpy.float64)
    rows /= numpy.linalg.norm(rows, axis=1, keepdims=True)
    row = {word: i for i, word in enumerate(words(trained))}
    hits, gains = [], []
    for own, other in zip(train, held):
        own = [row[item] for item in own.split()[1:]]
        wanted = {row[item] for item in other.split()[1:]} - set(own)  # recommendations leave out the list's items
        if not wanted:
            continue
        scores = rows @ rows[own].mean(0)
        scores[own] = -9
        found = [i in wanted for i in numpy.argsort(-scores)[:k]]
        hits.append(sum(found) / len(wanted))
        gains.append(sum(f / numpy.log2(place + 2) for place, f in enumerate(found))
                     / sum(1 / numpy.log2(place + 2) for place in range(min(len(wanted), k))))
    return numpy.mean(hits), numpy.mean(gains)


@pytest.mark.parametrize("corpus_format, table", [("lists", None), ("pairs", None), ("adjacency", "context")])
def test_items_need_no_keys(sptx, corpus_format, table):
    """With default keys, runs on lists, pairs and adjacency must find items that belong together."""
    lists = [[f"user{i}", *sentence.split()] for i, sentence in enumerate(sentences(1000, length=12))]
    train, held = "".join(" ".join(line[:12]) + "\n" for line in lists), "".join(f"{line[0]} {line[12]}\n" for line in lists)
    pairs = "".join(f"{line[0]} {item}\n" for line in lists for item in line[1:12])
    sptx.path("corpus.txt").write_text(pairs if corpus_format == "pairs" else train)
    sptx.path("train.txt").write_text(pairs if corpus_format == "pairs" else train)  # the file is in the format of the run's corpus
    sptx.path("held.txt").write_text(held)
    unset = {"update": None, "batch": None, "epochs": None}
    sptx("train", sptx.config(corpus={"format": corpus_format, "min_count": None}, examples={"window": None}, train=unset))
    done = sptx("evaluate", "run", "--train=train.txt", "--held-out=held.txt", *([f"--table={table}"] if table else []))
    assert float(re.search(r"recall@20 ([0-9.]+)", done.stdout).group(1)) > 0.35, done.stdout  # chance would give 0.07


def test_a_list_of_edges_trains(sptx):
    """A line of two nodes is shorter than the number of positives of an example: its items are repeated, and it is not left out."""
    sptx.path("corpus.txt").write_text("".join(f"n{i} n{(i * 7 + k) % 40}\n" for i in range(40) for k in range(3)))
    done = sptx("train", sptx.config(corpus={"format": "adjacency"}))
    assert "nothing was trained" not in done.stderr


def test_evaluate_table_is_checked(trained):
    assert "'targets' is not a table" in trained.refuses("evaluate", "run", "--pairs=x", "--table=targets", code=2)


def test_evaluate_lists(sptx):
    """All items of a list are of one topic, so most held-out items must be found."""
    lists = [f"user{i} " + sentence for i, sentence in enumerate(sentences(1500, length=12))]
    train = [" ".join(line.split()[:11]) for line in lists]
    held = [line.split()[0] + " " + " ".join(line.split()[11:]) for line in lists]
    sptx.path("corpus.txt").write_text("\n".join(train) + "\n")
    sptx.path("held.txt").write_text("\n".join(held) + "\n")
    sptx("train", sptx.config(corpus={"format": "lists"}, examples={"mode": "list"}, train={"epochs": "20"}, optimizer={"lr": "0.05"}))
    done = sptx("evaluate", "run", "--train=corpus.txt", "--held-out=held.txt", "--k=20")
    said = dict(re.findall(r"(recall@20|ndcg@20|hit@20|lists|unknown) ([0-9.]+)", done.stdout))
    hits, gains = held_out(sptx, train, held, 20)
    assert abs(float(said["recall@20"]) - hits) < 0.0006 and abs(float(said["ndcg@20"]) - gains) < 0.0006
    assert float(said["recall@20"]) > 0.4 and int(said["lists"]) > 1000
    assert " score target lists " in done.stdout
    by_score = {score: sptx("evaluate", "run", "--train=corpus.txt", "--held-out=held.txt", "--score=" + score).stdout
                for score in ("target", "context", "context-cosine", "normsum", "sum", "context-context")}
    assert len({line.split(" score ")[0] for line in by_score.values()}) > 3
    for score, line in by_score.items():
        assert f" score {score} lists " in line and float(line.split()[1]) > 0.4, line
    assert by_score["target"] == done.stdout
    for table, score in (("target", "target"), ("context", "context-context"), ("sum", "sum"), ("normsum", "normsum")):
        said = sptx("evaluate", "run", "--train=corpus.txt", "--held-out=held.txt", "--table=" + table).stdout
        assert said == by_score[score]
    said = sptx("evaluate", "run", "--train=corpus.txt", "--held-out=held.txt", "--table=sum", "--score=context").stdout
    assert said == by_score["context"]


def test_evaluate_score_is_checked(trained):
    lists = ["--train=corpus.txt", "--held-out=corpus.txt"]
    said = trained.refuses("evaluate", "run", *lists, "--score=targets", code=2)
    assert said == "'targets' is not a score of lists; wanted target, context, context-cosine, normsum, sum, propagated, context-" \
                   "context, user or user-cosine"
    assert "--score is how held-out items are scored" in trained.refuses("evaluate", "run", "--pairs=x", "--score=target", code=2)


@pytest.mark.parametrize("file", ["target.npy", "state.ini", "vocab.tsv", "config.ini", "metrics.jsonl", "latest", "corpus.ids"])
@pytest.mark.parametrize("command", [["export", "run", "--format=npy"], ["generate", "words", "--rows=100", "--lists=100"]])
def test_a_runs_own_files_are_not_written_over(trained, file, command):
    path = trained.path("run", file) if trained.path("run", file).exists() else trained.checkpoint() / file
    before = path.read_bytes()
    for out in (path, trained.path("link")):
        if out != path:
            out.symlink_to(path)
        said = trained.refuses(*command, f"--out={out}")
        assert said == f"--out = '{out}' is a file of the run in '{path.parent}', which would be lost: choose another"
    assert path.read_bytes() == before
    trained("export", "run", "--format=npy", f"--out={path.parent / 'mine.npy'}")


def test_a_second_file_of_an_export_is_none_of_a_run(trained):
    trained.path("p.metadata.tsv").symlink_to("run/vocab.tsv")
    said = trained.refuses("export", "run", "--format=projector", "--out=p")
    assert said == "--out = 'p.metadata.tsv' is a file of the run in 'run', which would be lost: choose another"
    assert os.listdir(trained.directory).count("p.vectors.tsv") == 0


@pytest.mark.parametrize("form, name", [("word2vec-bin", "v.bin"), ("word2vec-text", "v.vec"), ("glove-text", "v.txt"),
                                        ("fasttext", "f.bin")])
def test_files_of_vectors_answer_as_the_run_does(trained, form, name):
    """nearest and analogy open files in the formats of word2vec, GloVe and fastText, in place of a run."""
    trained("export", "run", f"--format={form}", f"--out={name}")
    words = [line.split("\t")[0] for line in trained.path("run", "vocab.tsv").read_text().splitlines()[:3]]
    for question in (("nearest", "{}", *words[:2], "--k=4"), ("analogy", "{}", *words, "--k=2")):
        said = [trained(*(part.format(run) for part in question)).stdout for run in ("run", name)]
        assert said[0] == said[1] != ""


def test_a_file_in_a_runs_place_that_holds_no_vectors_is_refused(sptx):
    sptx.path("notes.txt").write_text("some words of a text\n")
    assert sptx.refuses("nearest", "notes.txt", "some") == (
        "'notes.txt' begins neither with its numbers of rows and columns nor with a word and its vector; wanted word2vec's binary or "
        "text form, GloVe's text, or an npy")


# ---- files that belong together ----

PAIR = ["--format=npy", "--type=int8", "--columns=5"]


def two_runs(sptx):
    for seed in "12":
        sptx("train", sptx.config(), f"--train.seed={seed}", f"--run.dir=r{seed}")
    sptx("export", "r1", *PAIR, "--out=x")
    return {name: sptx.path(name).read_bytes() for name in ("x", "x.rotation.npy", "x.scales.npy")}


def files(sptx):
    return {path.name: path.read_bytes() for path in sptx.path(".").glob("x*")}


@pytest.mark.skipif(not FAULTS.exists(), reason="make tests builds the library that makes calls fail")
@pytest.mark.parametrize("kind", ["rename", "write", "sync"])
def test_an_export_that_fails_puts_all_files_back(sptx, kind):
    before = two_runs(sptx)
    for number in range(1, 6 if kind == "rename" else 4):
        assert "Input/output error" in sptx("export", "r2", *PAIR, "--out=x", env=failing(kind, number, "EIO"), expect=1).stderr
        assert files(sptx) == before
    assert "one export  'x' and 2 files beside it" in sptx("export", "--check=x").stderr


@pytest.mark.skipif(not FAULTS.exists(), reason="make tests builds the library that makes calls fail")
def test_an_export_that_is_killed_is_noticed_and_the_next_one_clears_up(sptx):
    before = two_runs(sptx)
    for number in range(1, 6):  # a second name for an older file counts as a renaming, too
        sptx("export", "r2", *PAIR, "--out=x", env=failing("rename", number, "KILL"), expect=-9)
        left = set(files(sptx)) - set(before)
        assert left and all(name.endswith(".partial") for name in left)
        if number > 2:  # a file beside x is the newer one
            assert re.fullmatch(r"'x' and 'x\.(scales|rotation)\.npy' are of two exports, the later of which was stopped: export them again",
                                sptx.refuses("export", "--check=x"))
        sptx.path("x.npy.partial").write_text("the user's")
        sptx("export", "r1", *PAIR, "--out=x")
        assert files(sptx) == {**before, "x.npy.partial": b"the user's"}


def test_files_of_an_older_export_that_no_longer_belong_go(sptx):
    two_runs(sptx)
    numpy.save(sptx.path("x.mean.npy"), numpy.zeros((1, 5), "f4"))  # the user's own
    sptx("export", "r1", "--format=npy", "--out=x")
    assert set(files(sptx)) == {"x", "x.mean.npy"}
    assert "has no file of an export beside it" in sptx("export", "--check=x").stderr


def test_an_export_never_replaces_the_file_that_it_reads(trained):
    trained("export", "run", "--format=word2vec-bin", "--out=v.bin")
    before = trained.path("v.bin").read_bytes()
    assert trained.refuses("export", "v.bin", "--format=npy", "--out=./v.bin", code=2) == \
        "export: --out = './v.bin' is the file that is read, which would be lost; choose another"
    assert trained.path("v.bin").read_bytes() == before
