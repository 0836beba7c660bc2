"""New items by their features: a planted shop, whose people like two kinds of things, and files of features in several forms."""
import base64
import re

import numpy
import pytest
from conftest import Program
from test_report import shown

KINDS, OLD, NEW, DIM = 8, 25, 6, 16  # kinds of things; trained and new items of each kind


def write_features(path, rng, permuted=False):
    """Writes a feature of each item's kind, and one at random."""
    names = [f"k{k}i{i}" for k in range(KINDS) for i in range(OLD + NEW)]
    kinds = [name[:2] for name in names]
    if permuted:
        rng.shuffle(kinds)
    path.write_text("".join(f"{name}\tkind:{kind} other:{rng.integers(30)}\n" for name, kind in zip(names, kinds)))


@pytest.fixture(scope="session")
def shop_once(tmp_path_factory):
    """A run on people's lists; each has 2 to 4 held-out items, some of them new."""
    program = Program(tmp_path_factory.mktemp("features"))
    rng = numpy.random.default_rng(8)
    train, held_out = [], []
    for person in range(600):
        kinds = rng.choice(KINDS, 2, replace=False)
        pick = [f"k{k}i{i}" for k in kinds for i in rng.choice(OLD, 7, replace=False)]
        rng.shuffle(pick)
        train.append(" ".join([f"p{person}", *pick[2:]]))
        held_out.append(" ".join([f"p{person}", *pick[:2], *(f"k{k}i{OLD + rng.integers(NEW)}" for k in kinds)]))
    program.path("train.txt").write_text("\n".join(train) + "\n")
    program.path("held_out.txt").write_text("\n".join(held_out) + "\n")
    write_features(program.path("features.tsv"), rng)
    write_features(program.path("random.tsv"), rng, permuted=True)
    program("train", program.config(corpus={"path": "train.txt", "format": "lists", "item_features": "features.tsv"}, model={"dim": str(DIM)},
                                    examples={"window": None}, train={"batch": None, "epochs": "30", "update": None}))
    return program


@pytest.fixture
def shop(shop_once, tmp_path):
    program = Program(shop_once.directory)
    program.own = tmp_path
    return program


def evaluate(shop, *options):
    """Returns {what was judged: recall@5} and the text of stderr."""
    done = shop("evaluate", "run", "--train=train.txt", "--held-out=held_out.txt", "--k=5", *options)
    return {m[1]: float(m[2]) for m in re.finditer(r"(?m)^(?:(.*): )?recall@5 ([0-9.]+)", done.stdout)}, done.stderr


def test_the_plan_reads_the_features_too(shop):
    assert "cannot open 'nowhere'" in shop.refuses("plan", "run.ini", "--corpus.item_features=nowhere", "--run.dir=new")
    assert not shop.path("new").exists()


def test_new_items_are_found_by_their_features(shop):
    found, said = evaluate(shop)
    assert set(found) == {"trained items among trained ones", "new items among new ones", "new items among all", "trained items among all"}
    assert found["new items among new ones"] > 2 * 5 / (KINDS * NEW)
    assert "new items  48; of 200 trained items 200 have features" in said
    by_chance, said = evaluate(shop, "--item-features=random.tsv")
    assert by_chance["new items among new ones"] < found["new items among new ones"] / 1.5
    assert "warning: the features of 'random.tsv' hardly tell anything" in said


def test_features_change_no_trained_row(shop):
    shop.config(name=str(shop.own / "plain.ini"), corpus={"path": "train.txt", "format": "lists"}, model={"dim": str(DIM)}, examples={"window": None},
                train={"batch": None, "epochs": "30", "update": None}, run={"dir": str(shop.own / "plain")})
    shop("train", shop.own / "plain.ini")
    assert shop.tables(shop.own / "plain") == shop.tables()


def test_new_share_says_how_many_places_new_items_take(shop):
    places = []
    for share in ("0", "0.1", "0.4"):
        done = shop("recommend", "run", "--lists=train.txt", "--k=20", f"--new-share={share}")
        new = [int(line.split("\t")[1].split("i")[1]) >= OLD for line in done.stdout.splitlines()]
        places.append(sum(new) / len(new))
    assert places[0] < 0.01 and abs(places[1] - 0.1) < 0.05 and abs(places[2] - 0.4) < 0.1
    assert "from 0 to 1" in shop.refuses("recommend", "run", "--list=p1", "--new-share=2", code=2)


def test_rows_of_features_solve_the_least_squares_problem(shop):
    """The cosine of a feature with an item, from the normal equations in float64."""
    done = shop("nearest", "run", "kind:k3", "--k=200")
    ridge = float(re.search(r"ridge ([0-9.]+)", done.stderr)[1])
    items = [line.split("\t")[0] for line in shop.path("run", "vocab.tsv").read_text().splitlines()][:KINDS * OLD]
    rows = numpy.load(shop.checkpoint() / "context.npy")["weights"].astype(float)
    rows /= numpy.linalg.norm(rows, axis=1, keepdims=True)
    features = dict(line.split("\t") for line in shop.path("features.tsv").read_text().splitlines())
    names = sorted({f for text in features.values() for f in text.split()})
    count = numpy.array([sum(name in features[item].split() for item in items) for name in names])
    x = numpy.array([[name in features[item].split() for name in names] for item in items]) * numpy.log((1 + len(items)) / numpy.maximum(count, 1))
    x /= numpy.linalg.norm(x, axis=1, keepdims=True)
    mean = rows.mean(0)
    solved = numpy.linalg.solve(x.T @ x + ridge * numpy.eye(len(names)), x.T @ (rows - mean))
    wanted = mean + solved[names.index("kind:k3")]
    wanted = rows @ wanted / numpy.linalg.norm(wanted)
    for line in done.stdout.splitlines():
        item, score = line.split("\t")
        assert abs(float(score) - wanted[items.index(item)]) < 2e-3


@pytest.fixture(scope="module")
def series(tmp_path_factory):
    """A run on readers of 150 series of four books. Each has read two or three books of seven series, so that few have read the same; the last book
    of each third series is new."""
    program = Program(tmp_path_factory.mktemp("series"))
    rng = numpy.random.default_rng(4)
    train, held_out = [], []
    for reader in range(400):
        books = [f"s{s}b{b}" for s in rng.choice(150, 7, replace=False) for b in rng.choice(4, 3, replace=False)]
        is_new = [book.endswith("b3") and int(book[1:].split("b")[0]) % 3 == 0 for book in books]
        hidden = [new or rng.random() < 0.15 for new in is_new]
        train.append(" ".join([f"r{reader}", *(book for book, hide in zip(books, hidden) if not hide)]))
        held_out.append(" ".join([f"r{reader}", *(book for book, hide in zip(books, hidden) if hide)]))
    program.path("train.txt").write_text("\n".join(train) + "\n")
    program.path("held_out.txt").write_text("\n".join(held_out) + "\n")
    program.path("features.tsv").write_text("".join(f"s{s}b{b}\tseries:{s} word:{rng.integers(40)} word:{rng.integers(40)}\n"
                                                    for s in range(150) for b in range(4)))
    program("train", "--corpus.path=train.txt", "--corpus.format=lists", f"--model.dim={DIM}", "--run.dir=run", "--train.epochs=20")
    return program


def test_what_items_have_in_common_counts_where_it_finds_left_out_items(series):
    without, _ = evaluate(series)
    found, said = evaluate(series, "--item-features=features.tsv")
    assert re.search(r"what items have in common with a list's items counts [0-9.]+ beside learnt scores", said)
    assert found["trained items among trained ones"] > 1.2 * without[None]
    assert found["trained items among all"] > without[None] and found["new items among all"] > 0.03


@pytest.mark.parametrize("options", [(), ("--seen",), ("--among=300",), ("--among=new",), ("--k=1",), ("--k=600",)])
def test_content_is_added_to_the_scores_of_all_items(series, options):
    """The answers to one list, by NumPy; the weight is said with three digits."""
    done = series("recommend", "run", "--list=r7", "--item-features=features.tsv", "--new-share=0.1", *options)
    weight = float(re.search(r"counts ([0-9.]+) beside", done.stderr)[1])
    plain = series("recommend", "run", "--list=r7", "--k=600", "--seen")
    learnt = {line.split("\t")[1]: float(line.split("\t")[2]) for line in plain.stdout.splitlines()}
    features = {name: set(text.split()) for name, text in (line.split("\t") for line in series.path("features.tsv").read_text().splitlines())}
    idf = {f: numpy.log((1 + len(learnt)) / count) for f in set().union(*features.values())
           if (count := sum(f in features[name] for name in learnt))}

    def parts(name):
        weights = {f: idf[f] for f in features[name] if f in idf}
        return {f: value / numpy.sqrt(sum(w * w for w in weights.values())) for f, value in weights.items()}
    liked = series.path("train.txt").read_text().splitlines()[7].split()[1:]
    profile = {}
    for name in liked:
        for f, value in parts(name).items():
            profile[f] = profile.get(f, 0) + value
    root = sum(value * value for value in profile.values()) ** 0.25
    wanted = {name: score + weight / root * sum(profile.get(f, 0) * value for f, value in parts(name).items()) for name, score in learnt.items()}
    answer = [(line.split("\t")[1], float(line.split("\t")[2])) for line in done.stdout.splitlines()]
    vocabulary = [line.split("\t")[0] for line in series.path("run", "vocab.tsv").read_text().splitlines()]
    old = [name for name in wanted if (name not in liked or "--seen" in options) and (options != ("--among=300",) or name in vocabulary[:300])]
    scores = [score for _, score in answer]
    assert scores == sorted(scores, reverse=True) and len({name for name, _ in answer}) == len(answer) > 0
    if options == ("--among=new",):
        assert not {name for name, _ in answer} & set(wanted)
        return
    for name, score in answer:
        assert name not in wanted or abs(score - wanted[name]) < 0.01
    assert {name for name, _ in answer} >= {name for name in old if wanted[name] > scores[-1] + 0.01}
    assert {name for name, _ in answer} & set(wanted) <= set(old)


def test_only_new_items(shop):
    done = shop("recommend", "run", "--list=p1", "--among=new", "--k=10")
    items = [line.split("\t")[1] for line in done.stdout.splitlines()]
    assert len(items) == 10 and all(int(item.split("i")[1]) >= OLD for item in items)
    liked = {item[:2] for item in shop.path("train.txt").read_text().splitlines()[1].split()[1:]}
    assert sum(item[:2] in liked for item in items) >= 6
    done = shop("recommend", "run", f"--items=k2i{OLD}", "--k=5")  # a list of new items alone
    assert all("k2" in line for line in done.stdout.splitlines())
    done = shop("nearest", "run", f"k4i{OLD + 1}", "--k=5")
    assert sum("k4" in line for line in done.stdout.splitlines()) >= 4


def test_new_people_by_their_features(shop):
    """People who like two kinds, of which one is a feature; the last hundred are new."""
    liked = [re.findall(r"k\d", line)[0] for line in shop.path("train.txt").read_text().splitlines()]
    trained = "".join(line + "\n" for line in shop.path("train.txt").read_text().splitlines()[:500])
    (shop.own / "train.txt").write_text(trained)
    people = shop.own / "people.csv"
    people.write_text("user,job,age\n" + "".join(f"p{n},likes {kind},{n % 60}\n" for n, kind in enumerate(liked)))
    shop.config(name=str(shop.own / "run.ini"), corpus={"path": str(shop.own / "train.txt"), "format": "lists", "list_features": str(people)},
                model={"dim": str(DIM)}, examples={"window": None}, train={"batch": None, "epochs": "30", "update": None},
                run={"dir": str(shop.own / "run")})
    shop("train", shop.own / "run.ini")
    done = shop("recommend", shop.own / "run", "--list=p550", "--k=10")  # by features alone
    assert "new lists  100; of 500 trained lists 500 have features" in done.stderr
    assert sum(liked[550] in line for line in done.stdout.splitlines()) >= 8
    assert "was trained on no list 'p600'" in shop.refuses("recommend", shop.own / "run", "--list=p600", code=2)
    (shop.own / "one.txt").write_text("".join(f"p{n} k{n % KINDS}i1\n" for n in range(500, 600)))  # by features and one item
    (shop.own / "held_out.txt").write_text("".join(f"p{n} {liked[n]}i0 {liked[n]}i2 {liked[n]}i3 {liked[n]}i4\n" for n in range(500, 600)))
    (shop.own / "trained.tsv").write_text("".join(f"p{n}\tx\n" for n in range(500)))
    recall = []
    for options in ([], [f"--list-features={shop.own / 'trained.tsv'}"]):  # the second file has no new person
        done = shop("evaluate", shop.own / "run", f"--train={shop.own / 'one.txt'}", f"--held-out={shop.own / 'held_out.txt'}", *options)
        recall.append(float(re.search(r"recall@20 ([0-9.]+)", done.stdout)[1]))
    assert recall[0] > 1.5 * recall[1]


def test_a_table_of_columns(shop):
    rng = numpy.random.default_rng(1)
    rows = [(f"k{k}i{i}", f"Thing, no. {k} {i}", f"k{k}|x{rng.integers(4)}", str(k * 10 + rng.integers(10)), rng.choice(["red", "blue"]))
            for k in range(KINDS) for i in range(OLD + NEW)]
    table = shop.own / "things.csv"
    table.write_text("item,title,tags,price,color\n" + "".join(f'{a},"{b}",{c},{d},{e}\n' for a, b, c, d, e in rows))
    found, said = evaluate(shop, f"--item-features={table}")
    assert "title = a name, as all values differ (left out), tags = values separated by |, price = numbers in 10 ranges, color = 2 values" in said
    assert found["new items among new ones"] > 2 * 5 / (KINDS * NEW)
    done = shop("nearest", "run", "tags:k5", "color:red", f"--item-features={table}", "--k=4")
    assert sum("k5" in line for line in done.stdout.splitlines()[:5]) >= 4
    done = shop("nearest", "run", "title:Thing,", f"--item-features={table}", "--feature-words=title", "--k=1")
    assert "title = words" in done.stderr


def test_features_are_exported(shop):
    """Each as the vector that nearest asks by."""
    out = shop.own / "features.txt"
    shop("export", "run", "--features", "--format=word2vec-text", f"--out={out}")
    lines = [line.split(" ") for line in out.read_text().splitlines()]
    rows = {name: numpy.array(row, float) for name, *row in lines[1:]}
    assert lines[0] == [str(len(rows)), str(DIM)] and {f"kind:k{k}" for k in range(KINDS)} < set(rows)
    items = [line.split("\t")[0] for line in shop.path("run", "vocab.tsv").read_text().splitlines()]
    trained = numpy.load(shop.checkpoint() / "context.npy")["weights"].astype(float)
    for line in shop("nearest", "run", "kind:k3", "--k=5").stdout.splitlines():
        item, score = line.split("\t")
        row, feature = trained[items.index(item)], rows["kind:k3"]
        assert abs(float(score) - row @ feature / numpy.linalg.norm(row) / numpy.linalg.norm(feature)) < 1e-4
    assert "writes no lists" in shop.refuses("export", "run", "--features", "--lists", "--format=npy", f"--out={out}", code=2)
    assert "belong to --features" in shop.refuses("export", "run", "--item-features=features.tsv", "--format=npy", f"--out={out}", code=2)


def test_several_lines_of_an_item_are_one_item(shop):
    """A line for each feature, in any order, gives the same answers as a line for each item."""
    lines = [f"{item},{feature}" for item, text in (line.split("\t") for line in shop.path("features.tsv").read_text().splitlines())
             for feature in text.split()]
    numpy.random.default_rng(2).shuffle(lines)
    (shop.own / "long.csv").write_text("\n".join(lines) + "\n")
    one, other = (shop("nearest", "run", "kind:k3", "--k=5", *options) for options in ([], [f"--item-features={shop.own / 'long.csv'}"]))
    counts = [re.search(r"features   (.*) items, (.*) features", done.stderr).groups() for done in (one, other)]
    assert counts[0] == counts[1] and all("k3" in line for line in other.stdout.splitlines())


NAMES = [f"k{k}i{i}" for k in range(KINDS) for i in range(OLD + NEW)]


def table(header, row):
    return header + "\n" + "".join(row(n, name) + "\n" for n, name in enumerate(NAMES))


@pytest.mark.parametrize("text, wanted", [
    (table("item;genre;price", lambda n, name: f"{name};{name[:2]};{n},5"), "genre = 8 values, price = numbers in 10 ranges ("),
    (table("item,genre,price", lambda n, name: f"{name},{name[:2]},{n * 0.5 if n % 3 else 'NaN'}"), "price = numbers in 10 ranges and 1 other value"),
    (table("item,genre,price", lambda n, name: f"{name},{name[:2]},{'inf' if n % 7 else n}"), "price = 37 values ("),
    (table("item,genre,time", lambda n, name: f"{name},{name[:2]},{1700000000000000 + n}"), "features   248 items, 18 features"),
    (table(",item,genre", lambda n, name: f"{n},{name},{name[:2]}"), "name = item; commas"),
    (table(",item,genre", lambda n, name: f"{n},{name},{name[:2]}"), "column 1 = a name, as all values differ (left out), genre = 8 values"),
    (table(",genre,color", lambda n, name: f"{name},{name[:2]},{'red' if n % 2 else 'blue'}"), "genre = 8 values, color = 2 values ("),
    (table("item,,genre", lambda n, name: f"{name},{'red' if n % 2 else 'blue'},{name[:2]}"), "column 2 = 2 values, genre = 8 values"),
    (table('"genre" "color"', lambda n, name: f'"{name}" "{name[:2]}" "{"red" if n % 2 else "blue"}"'), "name = column 1; blanks"),
    (table('"genre" "color"', lambda n, name: f'"{name}" "{name[:2]}" "{"red" if n % 2 else "blue"}"'), "genre = 8 values, color = 2 values ("),
    (table('"item" "genre"', lambda n, name: f'"{n + 1}" "{name}" "{name[:2]}"'), "all values differ (left out), genre = 8 values ("),
    ("# what they are\n" + table("", lambda n, name: f"{name}\t{name[:2]} x").lstrip(), "features   248 items, 9 features"),
    ("#item\tgenre\n" + table("", lambda n, name: f"{name}\t{name[:2]}").lstrip(), "features   genre = 8 values ("),
    ("sep=;\n" + table("item;genre", lambda n, name: f"{name};{name[:2]}"), "features   genre = 8 values ("),
    ("\ufeff" + table("item,genre", lambda n, name: f"{name},{name[:2]}").replace("\n", "\r\n"), "features   genre = 8 values ("),
    ("k9i0\t" + " ".join(f"z{n}" for n in range(300_000)) + table("", lambda n, name: f"{name}\t{name[:2]}"), "249 items, 300,008 features"),
], ids=["decimal comma", "NaN", "few numbers", "long numbers", "index", "index left out", "index of names",
        "no name", "R", "R's columns", "R's numbers", "comment", "# header", "sep=", "BOM", "long line"])
def test_odd_tables(shop, text, wanted):
    (shop.own / "odd").write_text(text)
    assert wanted in shop("nearest", "run", "k1i1", f"--item-features={shop.own / 'odd'}", "--k=1").stderr


def test_words_of_no_column_are_refused(shop):
    (shop.own / "odd").write_text(table("item,genre", lambda n, name: f"{name},{name[:2]}"))
    for words, of in (("genre,nosuch", shop.own / "odd"), (" item", shop.own / "odd"), ("title", "features.tsv")):
        name = words.split(",")[-1].strip()
        said = shop.refuses("nearest", "run", "k1i1", f"--item-features={of}", f"--feature-words={words}")
        assert f"corpus.feature_words names '{name}', and" in said
    shop("nearest", "run", "k1i1", f"--item-features={shop.own / 'odd'}", "--feature-words= genre ,", "--k=1")
    said = shop.refuses("report", "run", f"--out={shop.own / 'page.html'}", "--colour=genre", f"--item-features={shop.own / 'odd'}",
                        "--feature-words=title")
    assert "corpus.feature_words names 'title', and" in said and not (shop.own / "page.html").exists()


@pytest.mark.parametrize("text, wanted", [
    (b"", "has no lines; wanted a name"),
    (b"\n \r\n", "has no lines; wanted a name"),
    ("k1i1\tx\n".encode("utf-16"), "is text in UTF-16"),
    (bytes(range(256)) * 9, "is no text"),
    ("".join(f"{name}\t{'x' if n < 5 else ''}\n" for n, name in enumerate(NAMES)).encode(), "has features of 5 items that 'run' was trained on"),
], ids=["empty", "blank", "UTF-16", "bytes", "few"])
def test_files_that_hold_nothing(shop, text, wanted):
    (shop.own / "bad").write_bytes(text)
    assert wanted in shop.refuses("nearest", "run", "k1i1", f"--item-features={shop.own / 'bad'}")


@pytest.mark.parametrize("text, wanted", [
    ("item,blurb\n" + "".join(f"k1i{i},a long story of some thing {i * 2 // 3} that nobody reads\n" for i in range(20)),
     "column 'blurb' is running text"),
    ("".join(f"k1i{i}\n" for i in range(20)), "has no features: its lines have one field"),
    ("a\tx y\nb\ty z\n", "has features of 0 items that 'run' was trained on"),
    ("k1i1," + ",".join(f"f{i}" for i in range(80)) + "\n", "wanted at most 64; many features are written as words after a tab"),
], ids=["text", "no features", "other names", "many fields"])
def test_files_that_are_refused(shop, text, wanted):
    (shop.own / "bad").write_text(text)
    assert wanted in shop.refuses("nearest", "run", "k1i1", f"--item-features={shop.own / 'bad'}")


def test_train_reads_the_file_first(shop):
    (shop.own / "bad").write_text("k1i1\nk1i2\n")
    ini = shop.config(name=str(shop.own / "run.ini"), corpus={"path": "train.txt", "format": "lists", "item_features": str(shop.own / "bad")},
                      run={"dir": str(shop.own / "run")}, examples={"window": None}, train={"batch": None, "update": None})
    assert "has no features" in shop.refuses("train", ini)
    assert not (shop.own / "run").exists()
    assert "needs corpus.format = lists or pairs" in shop.refuses("train", "--corpus.path=train.txt", "--corpus.item_features=features.tsv")
    assert "neither is set" in shop.refuses("train", "--corpus.path=train.txt", "--corpus.format=lists", "--corpus.feature_words=title")


def test_a_file_that_is_gone_is_only_a_warning(shop):
    path = shop.path("features.tsv")
    text = path.read_text()
    path.unlink()
    try:
        done = shop("recommend", "run", "--list=p1", "--k=3")
        assert "'features.tsv' is not there" in done.stderr and len(done.stdout.splitlines()) == 3
        assert "has no new items" in shop.refuses("recommend", "run", "--list=p1", "--among=new")
    finally:
        path.write_text(text)


def test_a_run_from_another_one_and_a_resumed_one_have_its_features(shop):
    def train(name, *options):
        done = shop("train", "--corpus.path=train.txt", "--corpus.format=lists", f"--model.dim={DIM}", "--train.from=run",
                    f"--run.dir={shop.own / name}", *options)
        return done.stderr + done.stdout, re.findall(r"(?m)^(?:item_features|feature_words) = ?(.*)$", (shop.own / name / "config.ini").read_text())

    said, keys = train("new", "--train.epochs=1")
    assert "features   'features.tsv', as in train.from (corpus.item_features)" in said and keys == ["features.tsv", ""]
    assert train("new", "--train.epochs=2", "--resume")[1] == ["features.tsv", ""]
    assert train("new", "--train.epochs=3", "--resume", "--corpus.item_features=random.tsv")[1] == ["random.tsv", ""]
    assert train("none", "--train.epochs=1", "--corpus.item_features=")[1] == ["", ""]
    shop.path("gone.tsv").write_text(shop.path("features.tsv").read_text())
    train("older", "--train.epochs=1", "--corpus.item_features=gone.tsv")
    shop.path("gone.tsv").unlink()
    said, keys = train("newer", "--train.epochs=1", f"--train.from={shop.own / 'older'}")
    assert keys == ["", ""] and "as in train.from" not in said


def test_a_named_file_that_is_gone_is_an_error(shop):
    assert "'/nowhere'" in shop.refuses("evaluate", "run", "--train=train.txt", "--held-out=held_out.txt", "--item-features=/nowhere")


def test_a_small_shop_whose_lists_keep_away_from_the_mean(sptx):
    """Each person likes half of the shop, so that nearly all new items' scores are below 0, and no factor could bring them in."""
    rng = numpy.random.default_rng(3)
    often = rng.permutation((numpy.arange(270) + 10.0) ** -0.7)
    items = numpy.array([f"g{g}i{i}" for g in range(6) for i in range(45)])
    for person in range(500):
        likely = often * numpy.isin(numpy.arange(270) // 45, rng.choice(6, 3, replace=False))
        of = numpy.union1d(rng.choice(items, 22, replace=False, p=likely / likely.sum()), rng.choice(items, 4, replace=False))
        with open(sptx.path("lists"), "a") as to:
            to.write(" ".join([f"p{person}", *rng.permutation(of)]) + "\n")
    sptx.path("features.tsv").write_text("".join(
        f"g{g}i{i}\tkind:{g if i % 5 else rng.integers(6)} m{g}{i % 5} {' '.join(f'w{rng.integers(300)}' for _ in range(2))}\n"
        for g in range(6) for i in range(50)))
    sptx("train", "--corpus.path=lists", "--corpus.format=lists", "--corpus.item_features=features.tsv", "--run.dir=run")
    for share in 0.03, 0.2, 0.5:
        answers = sptx("recommend", "run", "--lists=lists", "--k=20", f"--new-share={share}").stdout.splitlines()
        new = [int(line.split("\t")[1].split("i")[1]) >= 45 for line in answers]
        assert share / 2 < sum(new) / len(new) < share * 1.5
        assert max(float(line.split("\t")[2]) for line in answers) < 5


def groups_of(path):
    page = shown(path)
    return page["groups"]["names"], dict(zip(page["names"], base64.b64decode(page["groups"]["of"])))


def test_the_map_is_coloured_by_a_feature(shop):
    own, table = shop.own / "own.html", shop.own / "table.csv"
    shop("report", "run", f"--out={own}", "--colour=Kind")
    names, of = groups_of(own)
    assert sorted(names) == [f"k{k}" for k in range(KINDS)] and len(of) == KINDS * OLD
    assert all(names[group] == item[:2] for item, group in of.items())
    lines = [f"k{k}i{i},{'' if i else f'g{k % 3}|g9'},{i},A long way {k} to {i}" for k in range(KINDS) for i in range(OLD)]
    table.write_text("\n".join(["item,genre,year,title", *lines]) + "\n")
    for column, groups in ("genre", 3), ("year", 10):
        done = shop("report", "run", f"--out={shop.own}/page.html", f"--colour={column}", f"--item-features={table}")
        names, of = groups_of(shop.own / "page.html")
        assert len(names) == groups and "year = numbers in 10 ranges" in done.stderr
        if column == "genre":
            assert all(group == 255 if item.split("i")[1] != "0" else names[group] == f"g{int(item[1]) % 3}" for item, group in of.items())


@pytest.mark.parametrize("options, code, sentence", [
    (["--colour=colour"], 1, "'features.tsv' has no features of a column 'colour'; columns with features: kind, other"),
    (["--colour=kind", "--item-features=nowhere"], 1, "cannot open 'nowhere': No such file or directory"),
    (["--colour=kind", "--labels=train.txt"], 2, "report: --labels and --colour both colour the map; wanted one of them"),
    (["--item-features=features.tsv"], 2, "report: --item-features and --feature-words belong to --colour=COLUMN, which says by which column the "
                                          "map is coloured"),
])
def test_a_colour_that_is_refused(shop, options, code, sentence):
    assert sentence in shop.refuses("report", "run", f"--out={shop.own}/page.html", *options, code=code)
    assert not (shop.own / "page.html").exists()
