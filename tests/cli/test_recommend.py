"""recommend: items that suit lists, compared with the definition in NumPy; omitted items; bad input; streams that end."""
import json
import re
import subprocess

import numpy
import pytest
from conftest import PROGRAM, SLOWER, Program, warned

ITEMS, DIM = 240, 8


def lists_of(rng, count, longest):
    return {f"u{n}": [f"i{item}" for item in rng.integers(0, ITEMS, rng.integers(1, longest))] for n in range(count)}


def as_text(lists):
    return "".join(" ".join([name, *items]) + "\n" for name, items in lists.items())


@pytest.fixture(scope="session")
def shop_once(tmp_path_factory):
    """A run on lists, with the lists that it was trained on in lists.txt."""
    program = Program(tmp_path_factory.mktemp("shop"))
    program.lists = lists_of(numpy.random.default_rng(5), 400, 12)
    program.path("lists.txt").write_text(as_text(program.lists))
    program("train", program.config(corpus={"path": "lists.txt", "format": "lists"}, examples={"mode": "list", "window": None},
                                    model={"dim": str(DIM)}, optimizer={"lr": "0.5"}))
    program.path("titles.tsv").write_text("".join(f"i{i}\tItem, number {i}\n" for i in range(0, ITEMS, 2)))
    return program


@pytest.fixture
def shop(shop_once, tmp_path):
    """The run, which tests only read, in a directory where they may write other files."""
    program = Program(shop_once.directory)
    program.lists, program.own = shop_once.lists, tmp_path
    return program


def own_file(shop, text, name="own.txt"):
    path = shop.own / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def words_of(shop):
    return [line.split("\t")[0] for line in shop.path("run", "vocab.tsv").read_text().splitlines()]


def unit(rows):
    return rows / numpy.maximum(numpy.linalg.norm(rows, axis=-1, keepdims=True), 1e-12)


def expected(shop, items, score, k=20, among=None, seen=False):
    """Computes the answers from the definition, in float64. Returns [(item, score)]."""
    target, context = (numpy.load(shop.checkpoint() / f"{name}.npy")["weights"].astype(float) for name in ("target", "context"))
    dot = score == "context"
    found = {"target": target, "context": context, "sum": target + context, "normsum": unit(target) + unit(context),
             "context-cosine": context, "context-context": context}[score]
    rows = target if score in ("context", "context-cosine") else found
    words = words_of(shop)
    row = {word: i for i, word in enumerate(words)}
    own = [row[item] for item in items if item in row]
    mean = (rows if dot else unit(rows))[own].mean(0)
    scores = found @ mean if dot else unit(found) @ unit(mean)
    if not seen:
        scores[own] = -numpy.inf
    scores = scores[:among]
    best = [i for i in numpy.argsort(-scores, kind="stable") if scores[i] > -numpy.inf][:k]
    return [(words[i], scores[i]) for i in best]


def answers(done):
    """Reads the output. Returns {list: [(item, score)]}, in the order printed."""
    found = {}
    for line in done.stdout.splitlines():
        name, item, score = line.split("\t")[:3]
        found.setdefault(name, []).append((item, float(score)))
    return found


def same(ours, wanted):
    """Checks that the items are the same and in the same order. Items whose scores have the same printed digits may change places.
    """
    assert len(ours) == len(wanted)
    assert numpy.allclose([score for _, score in ours], [score for _, score in wanted], atol=2e-6)
    for (item, score), (other, _) in zip(ours, wanted):
        assert item == other or any(abs(score - near) < 2e-6 for name, near in wanted if name == item), (ours, wanted)


SCORES = ["target", "context", "context-cosine", "normsum", "sum", "context-context"]


@pytest.mark.parametrize("score", SCORES)
def test_is_the_definition(shop, score):
    done = shop("recommend", "run", "--lists=lists.txt", f"--score={score}", "--k=7")
    found = answers(done)
    assert list(found) == list(shop.lists) and warned(done) == ""
    for name, items in shop.lists.items():
        same(found[name], expected(shop, items, score, 7))


def test_one_list_by_name_and_by_hand(shop):
    """A list must get the same answers in whichever way it is given, with the score that evaluate uses."""
    every = answers(shop("recommend", "run", "--lists=lists.txt"))
    some = answers(shop("recommend", "run", "--lists=lists.txt", "--name=u7", "--name=u3"))
    assert list(some) == ["u7", "u3"] and all(len(found) == 20 for found in some.values())
    assert some == {name: every[name] for name in some}
    by_hand = answers(shop("recommend", "run", "--items=" + ",".join(shop.lists["u7"]), "--score=target"))
    assert by_hand == {"items": every["u7"]}
    several = shop("recommend", "run", *("--items=" + item for item in shop.lists["u7"]))
    assert answers(several) == by_hand


@pytest.mark.parametrize("options", [[], ["--seen"]])
@pytest.mark.parametrize("among", [1, 19, 20, 21, ITEMS, 10**6, 0])
def test_among_and_seen(shop, among, options):
    """Searches only the first words (--among), with and without the list's own items. Own items may be past these words."""
    found = answers(shop("recommend", "run", "--lists=lists.txt", f"--among={among}", *options))
    for name, items in list(shop.lists.items())[:40]:
        same(found.get(name, []), expected(shop, items, "target", among=among or None, seen=bool(options)))
    if options:
        assert sum(item in shop.lists[name] for name, best in found.items() for item, _ in best) > 100 or among == 1
    else:
        assert not any(item in shop.lists[name] for name, best in found.items() for item, _ in best)


def test_more_asked_than_there_is(shop):
    for k in (ITEMS - 1, ITEMS, ITEMS + 1, 10**9):
        found = answers(shop("recommend", "run", "--lists=lists.txt", "--name=u3", f"--k={k}"))
        assert len(found["u3"]) == len(set(words_of(shop))) - len(set(shop.lists["u3"]))


def test_titles_are_a_last_column(shop):
    plain = shop("recommend", "run", "--lists=lists.txt", "--name=u3").stdout.splitlines()
    titled = shop("recommend", "run", "--lists=lists.txt", "--name=u3", "--titles=titles.tsv").stdout.splitlines()
    for line, with_title in zip(plain, titled):
        number = int(line.split("\t")[1][1:])
        assert with_title == line + "\t" + ("" if number % 2 else f"Item, number {number}")
    items = ["i0", "i2", "i7"]
    wanted = shop("recommend", "run", "--items=" + ",".join(items)).stdout
    # one title contains a comma; blanks around an item are no part of it
    given = ["--items=Item, number 0", "--items= i2 ,", "--items=i7"]  # in the same order: the rounding of a sum depends on it
    found = shop("recommend", "run", *given, "--titles=titles.tsv").stdout
    assert [line.split("\t")[:3] for line in found.splitlines()] == [line.split("\t") for line in wanted.splitlines()]


def test_json(shop):
    lists = own_file(shop, 'u"1\\ i3 i5 ghost\n\xff\x01 i4\nnobody ghost\nnothing\n'.encode("latin-1"))
    titles = own_file(shop, b"i0\tA \"b\" \\ </script> \xc3\xa9 \xff\n", "t.tsv")
    done = shop("recommend", "run", f"--lists={lists}", "--k=240", "--json", f"--titles={titles}")
    objects = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(o["list"], o["known"], o["unknown"], o["score"]) for o in objects] == [
        ('u"1\\', 2, 1, "target"), ("\ufffd\x01", 1, 0, "target"), ("nobody", 0, 1, "target"), ("nothing", 0, 0, "target")]
    assert objects[2]["items"] == objects[3]["items"] == []
    titles = {item["item"]: item["title"] for item in objects[0]["items"]}
    assert titles["i0"] == 'A "b" \\ </script> \u00e9 \ufffd' and titles["i1"] == ""
    text = shop("recommend", "run", f"--lists={lists}", "--k=240")
    lines = [line.split("\t")[1:] for line in text.stdout.splitlines()][:len(objects[0]["items"])]
    # Nine digits give the same float32.
    assert lines == [[item["item"], f"{numpy.float32(item['score']):.6f}"] for item in objects[0]["items"]]
    assert "title" not in json.loads(shop("recommend", "run", "--items=i3", "--json").stdout)["items"][0]


def test_what_is_not_known_is_counted(shop):
    lists = own_file(shop, "a i3 i5 ghost i3\nb spirit ghost\nc i4\nd\na ghost i7\n")
    done = shop("recommend", "run", f"--lists={lists}")
    assert f"warning: 4 of 9 items of '{lists}' are not in the vocabulary of '" in done.stderr
    assert f"warning: 2 of 4 lists of '{lists}' have no item that '" in done.stderr
    found = answers(done)
    assert list(found) == ["a", "c"]
    # List a occurs twice in the file, and one item twice in the list: both lines count, and so do both items.
    same(found["a"], expected(shop, ["i3", "i5", "i3", "i7"], "target"))
    named = shop("recommend", "run", f"--lists={lists}", "--name=c")
    assert warned(named) == "" and answers(named) == {"c": found["c"]}
    by_hand = shop("recommend", "run", "--items=i3,i44x,i5,,i7")
    said = r"warning: 'i44x' is not in the vocabulary of '.*run' and is left out; did you mean 'i\d+'\?\n"
    assert re.search(said, by_hand.stderr)
    same(answers(by_hand)["items"], expected(shop, ["i3", "i5", "i7"], "target"))


def test_nothing_known_is_a_failure(shop):
    lists = own_file(shop, "a ghost spirit\nb ghost\nc i3\n")
    assert re.fullmatch(r"none of the 3 items of these lists of '.*own.txt' is in the vocabulary of '.*run'",
                        shop.refuses("recommend", "run", f"--lists={lists}", "--name=a", "--name=b"))
    lists = own_file(shop, "a ghost spirit\nb ghost\n")
    assert re.fullmatch(r"none of the 3 items of '.*own.txt' is in the vocabulary of '.*run'",
                        shop.refuses("recommend", "run", f"--lists={lists}"))
    assert re.fullmatch(r"'i1x' is not in the vocabulary of '.*run'; did you mean 'i\d+'\?",
                        shop.refuses("recommend", "run", "--items=i1x"))
    assert "'ghost' is not in the vocabulary" in shop.refuses("recommend", "run", "--items=ghost,spirit", "--json")
    assert shop.refuses("recommend", "run", "--items=,", code=2) == "--items = ',' names no item"
    assert "did you mean 'u39'?" in shop.refuses("recommend", "run", "--lists=lists.txt", "--name=u39x")
    said = shop.refuses("recommend", "run", "--lists=lists.txt", "--name=somebody else")
    assert said == "'lists.txt' has no list 'somebody else'"


@pytest.mark.parametrize("text", ["", "\n \n\t\n"])
def test_a_file_without_lists(shop, text):
    lists = own_file(shop, text)
    assert shop.refuses("recommend", "run", f"--lists={lists}") == f"'{lists}' has no list"


def test_lists_without_items(shop):
    lists = own_file(shop, "u1\nu2\n")
    assert shop.refuses("recommend", "run", f"--lists={lists}") == f"the lists of '{lists}' have no items"
    assert shop.refuses("recommend", "run", f"--lists={lists}", "--name=u2") == f"these lists of '{lists}' have no items"


def test_a_long_item_is_cut_in_a_sentence(shop):
    assert len(shop.refuses("recommend", "run", "--items=" + "x" * 50000)) < 300
    assert len(shop("recommend", "run", "--items=i3," + "x" * 50000).stderr) < 300


@pytest.mark.parametrize("arguments, said", [
    ([], "recommend wants one run directory, 0 given"),
    (["run", "other"], "recommend wants one run directory, 2 given"),
    (["run"], "recommend wants either --lists=FILE, --list=NAME, --items=A,B,.. or, of triples, --relation=R;"),
    (["run", "--lists=lists.txt", "--list=u1"], "recommend wants either --lists=FILE, --list=NAME, --items=A,B,.. or, of triples, --relation=R;"),
    (["run", "--items=i1", "--among=3", "--candidates=lists.txt"], "recommend wants either --among=N or --candidates=FILE;"),
    (["run", "--list=u1"], "keeps no names of lists: with examples.mode = user lists have rows of their own; give the items of 'u1'"),
    (["run", "--lists=lists.txt", "--items=i1"], "recommend wants either --lists=FILE, --list=NAME, --items=A,B,.. or, of triples, --relation=R;"),
    (["run", "--items=i1", "--name=u1"], "recommend: --name = 'u1' is a list of a file; wanted --lists=FILE, too"),
    (["run", "--items=i1", "--k=0"], "recommend: --k = '0' is not a whole number from 1 to 1,000,000,000"),
    (["run", "--items=i1", "--k=-1"], "recommend: --k = '-1'"),
    (["run", "--items=i1", "--among=many"], "recommend: --among = 'many'"),
    (["run", "--items=i1", "--score=dot"], "'dot' is not a score of lists; wanted target, context, "),
    (["run", "--items=i1", "--model.dim=3"], "recommend has no use for '--model.dim=3'"),
    (["run", "--item=i1"], "recommend has no option '--item'; did you mean '--items'?"),
    (["run", "--lists="], "recommend: --lists needs a value"),
])
def test_called_wrongly(shop, arguments, said):
    assert said in shop.refuses("recommend", *arguments, code=2)


def test_files_that_cannot_be_read(shop):
    for options in (["--lists=absent.txt"], ["--items=i1", "--titles=absent.txt"]):
        assert "'absent.txt'" in shop.refuses("recommend", "run", *options)
    titles, pairs = own_file(shop, "i1\tx\ni2 y", "t.tsv"), own_file(shop, "u1,i1\nu2")
    assert "line 2: one field; wanted an id and a title" in shop.refuses("recommend", "run", "--items=i1", f"--titles={titles}")
    said = shop.refuses("recommend", "run", f"--lists={pairs}", "--corpus.format=pairs")
    assert f"'{pairs}' line 2: 1 field with commas between; wanted list, item[, rating]" in said
    assert "'nowhere'" in shop.refuses("recommend", "nowhere", "--items=i1")
    assert "lists.txt" in shop.refuses("recommend", "lists.txt", "--items=i1")


def test_formats(shop):
    """A file is read in the format of the run's corpus, or as the keys say. A compressed file is read, too."""
    wanted = answers(shop("recommend", "run", "--lists=lists.txt"))
    rated = (f"{name},{item},4\n{name},i1,2\n" for name, items in shop.lists.items() for item in items)
    pairs = own_file(shop, "user,item,rating\n" + "".join(rated))
    found = answers(shop("recommend", "run", f"--lists={pairs}", "--corpus.format=pairs", "--corpus.min_rating=3"))
    assert found == wanted
    subprocess.run(["gzip", "-k", pairs], check=True)
    found = answers(shop("recommend", "run", f"--lists={pairs}.gz", "--corpus.format=pairs", "--corpus.min_rating=3"))
    assert found == wanted
    for ending in ("\r\n", "\r"):
        lists = own_file(shop, "\ufeff" + as_text(shop.lists).replace("\n", ending))
        assert answers(shop("recommend", "run", f"--lists={lists}", "--corpus.format=adjacency")) == wanted


def test_a_run_by_cosines_is_scored_by_them(sptx):
    """The default score is the one by which the run was trained: with cosines, rows of one table are near rows of the other."""
    sptx.path("lists.txt").write_text(as_text(lists_of(numpy.random.default_rng(5), 100, 12)))
    sptx("train", sptx.config(corpus={"path": "lists.txt", "format": "lists"},
                              examples={"mode": "list", "window": None}, train={"loss": "softmax"}))
    for line in sptx("recommend", "run", "--lists=lists.txt", "--json").stdout.splitlines():
        assert json.loads(line)["score"] == "context-cosine"
    assert sptx("recommend", "run", "--lists=lists.txt").stdout == sptx("recommend", "run", "--lists=lists.txt",
                                                                        "--score=context-cosine").stdout
    sptx.path("held.txt").write_text(as_text({f"u{n}": ["new", "i1"] for n in range(100)}))
    said = sptx("evaluate", "run", "--train=lists.txt", "--held-out=held.txt").stdout
    assert " score context-cosine lists 100 " in said


# ---- lists given by name (--list), and candidate items ----

@pytest.fixture(scope="module", params=["user", "pairs", "adjacency", "graph"])
def named(request, tmp_path_factory):
    """A run that keeps the names of its lists, and the file on which it was trained. Some lists have two lines in it."""
    sptx = Program(tmp_path_factory.mktemp(request.param))
    lists = {f"u{n}" if request.param in ("user", "pairs") else f"i{n}": items
             for n, items in enumerate(lists_of(numpy.random.default_rng(8), 60, 9).values())}
    sptx.path("lists.txt").write_text(as_text(lists) + as_text({name: items[:1] for name, items in list(lists.items())[:5]}))
    pairs = [(name, item) for name, items in lists.items() for item in items]
    sptx.path("pairs.txt").write_text("".join(f"{name}\t{item}\n" for name, item in pairs))
    keys = {"user": ["lists.txt", "--corpus.format=lists", "--examples.mode=user"], "adjacency": ["lists.txt", "--corpus.format=adjacency"],
            "pairs": ["pairs.txt", "--corpus.format=pairs"], "graph": ["pairs.txt", "--corpus.format=graph"]}[request.param]
    sptx("train", f"--corpus.path={keys[0]}", *keys[1:], "--run.dir=run", "--model.dim=8", "--device.backend=cpu",
         "--examples.short=repeat" if request.param != "graph" else "--walks.per_node=2")
    sptx.lists, sptx.file = lists, "pairs.txt" if request.param == "pairs" else "lists.txt"
    return sptx


def test_a_trained_list_is_asked_by_its_name(named):
    """--list=NAME gives the same answers as --lists=FILE does for that list. A node of a graph is asked by its own row, and its
    neighbours are left out."""
    names = [list(named.lists)[at] for at in (2, 40, 7)]
    found = answers(named("recommend", "run", *(f"--list={name}" for name in names), "--k=6"))
    assert list(found) == names and all(len(items) == 6 for items in found.values())
    for name in names:
        assert not {item for item, _ in found[name]} & {*named.lists[name], name}
    if "graph" not in str(named.directory):
        read = named("recommend", "run", f"--lists={named.file}", *(f"--name={name}" for name in names), "--k=6")
        assert answers(read) == found
    said = named.refuses("recommend", "run", f"--list={names[0][0]}x{names[0][1:]}", code=2)
    assert re.search(r"did you mean '(\w+)'\?$", said).group(1)[0] == names[0][0]
    assert "was trained on no list 'nobody'" in named.refuses("recommend", "run", "--list=nobody", code=2)


def test_a_trained_list_without_its_corpus_says_so(named):
    name = list(named.lists)[3]
    if not named.path("run", "corpus.ids").exists():
        return  # in a graph the neighbours of a node are found without corpus.ids
    named.path("run", "corpus.ids").rename(named.path("kept"))
    done = named("recommend", "run", f"--list={name}", "--k=500")
    named.path("kept").rename(named.path("run", "corpus.ids"))
    assert "the items of its lists are not known" in done.stderr and len(done.stdout.splitlines()) > 0


def test_only_candidates_are_recommended(named):
    words = [word for word in words_of(named) if word.startswith("i")]
    candidates = words[3:120:7]
    named.path("candidates.txt").write_text("\n".join(["", *reversed(candidates), candidates[0], "stranger"]))
    for options in ([f"--items={words[0]},{words[3]}"], [f"--list={list(named.lists)[2]}"], [f"--items={words[5]}", "--seen"], [f"--items={words[5]}", "--score=normsum"]):
        every = named("recommend", "run", *options, "--k=1000").stdout.splitlines()
        wanted = [line for line in every if line.split("\t")[1] in candidates]
        done = named("recommend", "run", *options, "--k=1000", "--candidates=candidates.txt")
        assert [line.split("\t")[:2] for line in done.stdout.splitlines()] == [line.split("\t")[:2] for line in wanted]
        assert "1 candidates of 'candidates.txt' are no items" in done.stderr
        assert done.stdout.splitlines()[:4] == \
            named("recommend", "run", *options, "--k=4", "--candidates=candidates.txt").stdout.splitlines()
    named.path("candidates.txt").write_text("stranger\n")
    assert "has no item that 'run' knows" in named.refuses("recommend", "run", f"--items={words[0]}", "--candidates=candidates.txt")


def test_a_run_on_text_reads_lists(trained):
    trained.path("lists.txt").write_text("mine t1w0 t1w1\nyours t2w0\n")
    found = answers(trained("recommend", "run", "--lists=lists.txt", "--k=3"))
    assert [(name, len(items)) for name, items in found.items()] == [("mine", 3), ("yours", 3)]


def test_ties_by_row(sptx):
    """Items with equal vectors have equal scores. The more frequent one must be first, whatever the number of threads and lists."""
    rows = 3000
    sptx.path("equal.txt").write_text("".join(f"u{i} {' '.join(f'e{(i + j) % rows}' for j in range(5))}\n" for i in range(rows)))
    sptx("train", "--corpus.path=equal.txt", "--corpus.format=lists", "--run.dir=equal", "--train.steps=1", "--model.dim=4",
         "--model.target_init=zeros", "--device.backend=cpu", "--examples.mode=list")
    words = [line.split("\t")[0] for line in sptx.path("equal", "vocab.tsv").read_text().splitlines()]
    for threads in (1, 2, 3):
        for count in (1, 2, 300):
            sptx.path("lists.txt").write_text("".join(f"u{i} {words[0]} {words[2]}\n" for i in range(count)))
            found = answers(sptx("recommend", "equal", "--lists=lists.txt", "--k=4", f"--device.threads={threads}"))
            assert len(found) == count
            for best in found.values():
                assert best == [(words[i], 0.0) for i in (1, 3, 4, 5)]


# ---- where the answers go ----

def test_a_reader_that_goes_away(shop):
    command = '"$0" recommend run --lists=lists.txt --k=200 2>"$1" | head -1; echo "${PIPESTATUS[0]}"'
    done = subprocess.run(["bash", "-c", command, PROGRAM, shop.own / "err"], cwd=shop.directory, capture_output=True, text=True,
                          timeout=60 * SLOWER)
    first, code = done.stdout.splitlines()
    assert first.startswith("u0\t") and code == "141"
    assert "Broken pipe" not in (shop.own / "err").read_text()


@pytest.mark.parametrize("options", [[], ["--json"], ["--name=u1", "--k=1"]])
def test_a_full_disk(shop, options):
    with open("/dev/full", "w") as full:
        done = subprocess.run([PROGRAM, "recommend", "run", "--lists=lists.txt", *options], cwd=shop.directory, stdout=full,
                              stderr=subprocess.PIPE, text=True, timeout=60 * SLOWER)
    assert done.returncode == 1 and "cannot write the results to stdout: No space left on device" in done.stderr


def test_help_says_every_option(shop):
    said = shop("recommend", "--help").stdout
    assert said == shop("help", "recommend").stdout
    for option in ("--lists=", "--name=", "--items=", "--k=", "--score=", "--titles=", "--among=", "--seen", "--json", *SCORES):
        assert option in said
    assert "\n  recommend " in shop("help").stdout
