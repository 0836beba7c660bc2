"""How a finished run answers if no table is named: citations by both tables; items without the rows of lists."""
import random

import numpy
import pytest


def citations(papers=300, topics=6, seed=3):
    """Returns {paper: cited papers}. Papers cite within their topic; the last third of each topic is only cited and has no line."""
    rng = random.Random(seed)
    lines = {}
    for paper in range(papers * 2 // 3):
        cited = [other for other in range(papers) if other % topics == paper % topics and other != paper]
        lines[str(paper)] = [str(other) for other in rng.sample(cited, 8)]
    return lines


@pytest.fixture
def papers(sptx):
    lines = citations()
    sptx.path("train.txt").write_text("".join(f"{name} {' '.join(cited[:-2])}\n" for name, cited in lines.items()))
    sptx.path("held.txt").write_text("".join(f"{name} {' '.join(cited[-2:])}\n" for name, cited in lines.items()))
    sptx("train", "--corpus.path=train.txt", "--corpus.format=adjacency", "--model.dim=16", "--run.dir=run")
    return lines


def near(sptx, *arguments):
    return [line.split("\t")[0] for line in sptx("nearest", "run", *arguments).stdout.splitlines()]


def test_a_paper_without_a_line_has_neighbours(sptx, papers):
    found = near(sptx, "290", "--k=10")
    assert sum(int(paper) % 6 == 290 % 6 for paper in found) >= 9
    assert found == near(sptx, "290", "--k=10", "--query=sum", "--among=sum")
    assert found == near(sptx, "290", "--k=10", "--table=sum")
    assert near(sptx, "290", "--query=context", "--among=context") != found
    assert near(sptx, "290", "--query=context") == near(sptx, "290", "--table=target", "--query=context")
    said = sptx.refuses("nearest", "run", "290", "--query=target")
    assert said == ("'290' was never trained as a target in 'run': its row there is what it began as; ask the table context, "
                    "or sum")
    assert len(near(sptx, "290", "--query=context")) == 10  # --query=context alone searches among targets, as in earlier versions
    labels = "".join(f"{paper} topic{paper % 6}\n" for paper in range(300))
    sptx.path("topics.tsv").write_text(labels)
    groups = ["evaluate", "run", "--groups=topics.tsv", "--met=0", "--k=10"]
    assert sptx(*groups).stdout == sptx(*groups, "--table=sum").stdout != sptx(*groups, "--table=target").stdout
    for table in ("sum", "target"):
        sptx("export", "run", "--format=npy", f"--table={table}", f"--out={table}.npy")
    sptx("export", "run", "--format=npy", "--out=itself.npy")
    assert sptx.path("itself.npy").read_bytes() == sptx.path("sum.npy").read_bytes() != sptx.path("target.npy").read_bytes()


def test_what_was_never_trained_is_known_of_a_run_that_begins_from_another(sptx, papers):
    more = "".join(f"{paper} {paper % 6 + 6} {paper % 6 + 12}\n" for paper in range(1000, 1100))
    sptx.path("more.txt").write_text(more + "".join(f"2000 {paper}\n" for paper in range(200, 300)))
    sptx("train", "--corpus.path=more.txt", "--corpus.format=adjacency", "--model.dim=16", "--run.dir=grown", "--train.from=run",
         "--corpus.min_count=1")
    said = sptx.refuses("nearest", "grown", "290", "--query=target")
    assert said.startswith("'290' was never trained as a target in 'grown': ")


def test_lines_are_scored_by_the_paper_that_cites(sptx, papers):
    files = ["--train=train.txt", "--held-out=held.txt"]
    said = sptx("evaluate", "run", *files).stdout
    assert " score user lists 200 unknown" in said
    assert said == sptx("evaluate", "run", *files, "--score=user").stdout and float(said.split()[1]) > 4 * 20 / 300
    found = [line.split("\t") for line in sptx("recommend", "run", "--lists=train.txt", "--name=7", "--k=300").stdout.splitlines()]
    assert sum(int(item) % 6 == 1 for _, item, _ in found[:10]) >= 9
    words = [line.split("\t")[0] for line in sptx.path("run", "vocab.tsv").read_text().splitlines()]
    target, context = (numpy.load(sptx.checkpoint("run") / f"{name}.npy")["weights"] for name in ("target", "context"))
    assert "7" not in {item for _, item, _ in found} and len(found) == len(words) - 6 - 1
    own = context @ target[words.index("7")]
    assert all(abs(own[words.index(item)] - float(score)) < 1e-4 for _, item, score in found)
    by_hand = sptx("recommend", "run", "--items=290,296", "--json").stdout
    assert '"score": "sum"' in by_hand


# ---- files of another form than the run's corpus ----


@pytest.fixture
def readers(sptx):
    """Writes the same lists four times: as lines of lists, and as ratings separated by blanks, by tabs, and by commas with a
    header."""
    lists = {f"reader{name}": items for name, items in citations().items()}
    for name, part in (("train", slice(None, -2)), ("held", slice(-2, None))):
        sptx.path(f"{name}.lists").write_text("".join(f"{key} {' '.join(items[part])}\n" for key, items in lists.items()))
        for form, between in (("blanks", " "), ("tabs", "\t"), ("commas", ",")):
            rows = [between.join([key, item, str(1 + int(item) % 5)]) for key, items in lists.items() for item in items[part]]
            sptx.path(f"{name}.{form}").write_text("\n".join(rows) + "\n")
        header = "user,item,rating\n" + sptx.path(f"{name}.commas").read_text()
        sptx.path(f"{name}.header").write_text(header)
    return lists


@pytest.mark.parametrize("trained", ["lists", "commas"])
def test_each_file_is_read_as_it_looks(sptx, readers, trained):
    format = "lists" if trained == "lists" else "pairs"
    sptx("train", f"--corpus.path=train.{trained}", f"--corpus.format={format}", "--model.dim=8", "--train.epochs=2",
         "--negatives.count=20", "--run.dir=run")
    wanted = sptx("evaluate", "run", "--train=train.lists", "--held-out=held.lists", "--format=lists").stdout
    names = sptx("recommend", "run", "--lists=train.lists", "--format=lists").stdout
    for train in ("lists", "blanks", "tabs", "commas", "header"):
        held = "tabs" if train == "lists" else "lists" if train == "tabs" else train
        done = sptx("evaluate", "run", f"--train=train.{train}", f"--held-out=held.{held}")
        assert done.stdout == wanted
        assert ("'train.%s' as pairs" % train in done.stderr) == (trained == "lists" and train != "lists")
        assert ("'train.%s' as lists" % train in done.stderr) == (trained != "lists" and train == "lists")
        assert sptx("recommend", "run", f"--lists=train.{train}").stdout == names
    sptx.path("parts").mkdir()
    sptx.path("parts", "0").write_text("")  # an empty file does not show the format, but the next file does
    sptx.path("train.commas").rename(sptx.path("parts", "1"))
    assert sptx("evaluate", "run", "--train=parts", "--held-out=held.lists").stdout == wanted
    named = sptx("evaluate", "run", "--train=train.blanks", "--held-out=held.blanks", "--format=lists")
    assert named.stdout != wanted and " as pairs" not in named.stderr  # read as lists, as asked for, so that ratings are items
    key = sptx("evaluate", "run", "--train=train.blanks", "--held-out=held.blanks", "--corpus.format=lists")
    assert key.stdout == named.stdout
    sptx.path("ragged.lists").write_text(sptx.path("train.lists").read_text()[:-1] + " 3 4\n")  # lines of two lengths are no table
    said = sptx.refuses("evaluate", "run", "--train=ragged.lists", "--held-out=held.lists", "--format=pairs")
    assert said.startswith("'ragged.lists' line 200: 9 fields with blanks between; the first lines have 7: ")
    assert "--format" in sptx.refuses("evaluate", "run", "--train=train.lists", "--held-out=held.lists", "--format=lines")
    assert "wanted --lists=FILE" in sptx.refuses("recommend", "run", "--items=1", "--format=lists", code=2)


def test_one_pair_of_each_list_with_its_time_is_no_list(sptx, readers):
    sptx("train", "--corpus.path=train.tabs", "--corpus.format=pairs", "--model.dim=8", "--train.epochs=2", "--negatives.count=20",
         "--run.dir=run")
    last = "".join(f"{name}\t{items[-1]}\t{{}}\n" for name, items in readers.items())
    files = ["--train=train.tabs", "--held-out=last"]
    sptx.path("last").write_text("".join(line.format(978300760 + 977 * i) + "\n" for i, line in enumerate(last.splitlines())))
    done = sptx("evaluate", "run", *files)
    assert " as lists" not in done.stderr
    assert done.stdout == sptx("evaluate", "run", *files, "--format=pairs").stdout
