"""New items by their features from Python: frames, dicts and sparse matrices, in fit() and Run.add_items()."""
import os
import signal

import numpy
import pytest
import sptx

scipy_sparse = pytest.importorskip("scipy.sparse")

KINDS, OLD, NEW = 8, 25, 5
ITEMS = [f"k{k}i{i}" for k in range(KINDS) for i in range(OLD + NEW)]


def kind_of(item):
    return item[:2]


@pytest.fixture(scope="module")
def lists():
    rng = numpy.random.default_rng(3)
    return {f"p{p}": [f"k{k}i{i}" for k in rng.choice(KINDS, 2, replace=False) for i in rng.choice(OLD, 6, replace=False)] for p in range(500)}


@pytest.fixture(scope="module")
def features():
    rng = numpy.random.default_rng(4)
    return {item: [f"kind:{kind_of(item)}", f"x{rng.integers(20)}"] for item in ITEMS}


@pytest.fixture(scope="module")
def run(lists, features, tmp_path_factory):
    path = tmp_path_factory.mktemp("features") / "deep" / "run"
    return sptx.fit(lists, path, format="lists", dim=16, item_features=features, device="cpu", threads=2, progress=False)


def new_of(answer):
    return [item for item, _ in answer if int(item.split("i")[1]) >= OLD]


def test_fit_with_a_dict(run, lists):
    assert open(str(run._path) + ".items").readline() == "k0i0\tkind:k0 x%s\n" % open(str(run._path) + ".items").readline().split("x")[1].strip()
    answer = run.recommend(list="p0", k=10, among="new")
    assert len(new_of(answer)) == 10
    liked = {kind_of(item) for item in lists["p0"]}
    assert sum(kind_of(item) in liked for item in new_of(answer)) >= 6
    assert sum(kind_of(word) == "k3" for word, _ in run.nearest("kind:k3", k=5)) >= 4
    new = f"k2i{OLD}"
    assert run.vector(new).shape == (16,) and new not in list(run.words)
    assert all(kind_of(item) == "k2" for item, _ in run.recommend([new], k=3))  # a list of a new item alone
    held_out = {name: [f"{kind_of(items[0])}i{OLD + 2}"] for name, items in lists.items()}
    judged = run.evaluate(train=lists, held_out=held_out, k=10)["lists"]
    assert judged["new items among new ones"]["recall"] > 2 * 10 / (KINDS * NEW)


def test_a_run_that_is_opened_again_knows_them(run):
    again = sptx.Run(run._path, device="cpu")
    assert again.recommend(list="p1", k=5, among="new") == run.recommend(list="p1", k=5, among="new")


def test_add_items_from_a_frame(run, features):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"item": ITEMS, "kind": [kind_of(item) for item in ITEMS], "tags": [list(features[item][1:]) for item in ITEMS],
                              "title": [f"The {item}, again" for item in ITEMS]})
    run = sptx.Run(run._path, device="cpu")
    assert run.add_items(frame) == KINDS * NEW
    assert sum(kind_of(word) == "k5" for word, _ in run.nearest("kind:k5", k=5)) >= 4
    with pytest.raises(KeyError):
        run.nearest("title:The")
    assert run.add_items(frame, words=["title"], share=0.5) == KINDS * NEW
    run.nearest("title:The")
    assert len(new_of(run.recommend(list="p0", k=20))) > 4
    assert run.add_items(frame.set_index("item"), share=0) == KINDS * NEW
    assert not new_of(run.recommend(list="p0", k=20))


def test_add_items_from_a_matrix(lists, tmp_path):
    number = {item: i for i, item in enumerate(ITEMS)}
    named = {name: [number[item] for item in items] for name, items in lists.items()}
    run = sptx.fit(named, tmp_path / "run", format="lists", dim=16, device="cpu", threads=2, progress=False)
    kinds = scipy_sparse.csr_matrix(([1.0] * len(ITEMS), ([*range(len(ITEMS))], [int(item[1]) for item in ITEMS])))
    assert run.add_items(kinds) == KINDS * NEW
    answer = run.recommend(list="p0", k=6, among="new")
    liked = {kind_of(item) for item in lists["p0"]}
    assert sum(kind_of(ITEMS[int(item)]) in liked for item, _ in answer) >= 4


def test_new_people(lists, tmp_path):
    liked = {name: kind_of(items[0]) for name, items in lists.items()}
    people = {name: ["likes:" + kind] for name, kind in liked.items()}
    run = sptx.fit({name: items for name, items in lists.items() if int(name[1:]) < 400}, tmp_path / "run", format="lists", dim=16, device="cpu",
                   threads=2, progress=False, user_features=people)
    for answer in (run.recommend(list="p450", k=8), sptx.Run(tmp_path / "run", device="cpu").recommend(lists=["p3", "p450"], k=8)[1]):
        assert sum(kind_of(item) == liked["p450"] for item, _ in answer) >= 6
    with pytest.raises(KeyError):
        run.recommend(list="p999")
    assert run.add_items(lists={**people, "p999": ["likes:k2"]}) == 0
    assert sum(kind_of(item) == "k2" for item, _ in run.recommend(list="p999", k=8)) >= 6


def test_what_is_refused(run, features):
    with pytest.raises(ValueError, match="one word"):
        run.add_items({"k0i0": ["science fiction"]})
    with pytest.raises(TypeError, match="wanted a list"):
        run.add_items({"k0i0": "noir"})
    with pytest.raises(TypeError, match="not a int"):
        run.add_items(5)
    with pytest.raises(ValueError, match="from 0 to 1"):
        run.add_items(features, share=2)
    before = run.recommend(list="p0", k=5, among="new")
    with pytest.raises(sptx.Error, match="features of 0 items"):
        run.add_items({"other": ["a"], "names": ["b"]})
    assert run.recommend(list="p0", k=5, among="new") == before


def test_a_report_is_coloured_by_a_feature(run, features, tmp_path):
    path, frame = tmp_path / "page.html", {item: ["shelf:" + kind_of(item)] for item in ITEMS}
    run.report(path, colour="kind")
    own = path.read_bytes()
    assert b'"by":"labels"' in own and all(b'"k%d"' % k in own for k in range(KINDS))
    run.report(path, colour="shelf", item_features=frame)
    assert path.read_bytes() == own
    for options, kind, sentence in (({"colour": "shelf"}, sptx.Error, "columns with features: kind"),
                                    ({"item_features": frame}, ValueError, "colour"),
                                    ({"colour": "kind", "labels": path}, ValueError, "by labels, or")):
        with pytest.raises(kind, match=sentence):
            run.report(tmp_path / "none.html", **options)
    assert not (tmp_path / "none.html").exists()


def added(run, capfd, data):
    """Returns the line that says how many items and features were read."""
    run.add_items(data)
    return next(line for line in capfd.readouterr().err.splitlines() if line.startswith("features ") and "items," in line)


@pytest.fixture
def loud(run):
    run._context.is_quiet = False
    yield run
    run._context.is_quiet = True
    run.add_items()


def test_the_first_item_of_a_dict_is_no_header(loud, features, capfd):
    """Its name may be a known name of a column, begin with #, or be the only one that is no number."""
    for first in ("item", "#c"):
        assert " 241 items, 28 features" in added(loud, capfd, {first: ["kind:k1"], **features})
        assert loud.vector(first).any()
    assert " 340 items," in added(loud, capfd, {"k9": ["kind:k1"], **{n: [n] for n in range(99)}, **features})


@pytest.mark.parametrize("name", ["", " ", " a", "a\tb", "a\nb", "a\r"])
def test_names_of_no_item(run, features, name):
    with pytest.raises(ValueError, match="names no item in features"):
        run.add_items({**features, name: ["kind:k1"]})


def test_values_of_frames_stay_in_their_cells(loud, capfd):
    pandas = pytest.importorskip("pandas")
    items = [item.encode() for item in ITEMS]
    frame = pandas.DataFrame({"item": items, "ge\nnre": "a\r\nb", "n": pandas.array([None, *range(len(ITEMS) - 1)], dtype="Int64")})
    assert " 240 items, 11 features" in added(loud, capfd, frame)
    frame.columns = range(3)  # a header 0,1,2 looks like a row
    assert " 240 items, 11 features" in added(loud, capfd, frame) and loud.vector("column 1:a b").any()
    frame.columns = ["item", "genre", "genre"]
    with pytest.raises(ValueError, match="columns of the features have the same name: item, genre, genre"):
        loud.add_items(frame)


@pytest.mark.parametrize("columns", [["item", "kind"], ["shelf", "genre"], ["kind", "item"], ["#shelf", "genre"]])
def test_a_frame_has_a_header_whatever_items_are_called(loud, capfd, columns):
    pandas = pytest.importorskip("pandas")
    names = columns if columns[1] != "item" else columns[::-1]
    rows = [(item, "a " + kind_of(item)) for item in ITEMS] + [tuple(names), ("#x", "a k1"), ('q"', "a k2")]
    assert " 243 items, 9 features" in added(loud, capfd, pandas.DataFrame(rows, columns=names)[columns])
    assert loud.vector(names[1] + ":a k5").any()


def test_a_killed_fit_leaves_the_older_run_its_features(lists, features, tmp_path):
    """Killed before the first checkpoint, so that no exception can put a file back."""
    options = {"format": "lists", "dim": 16, "epochs": 20, "progress": False, "device": "cpu"}
    sptx.fit(lists, tmp_path / "run", item_features=features, **options)
    before = (tmp_path / "run.items").read_bytes()
    child = os.fork()
    if not child:
        data = (items if items else os.kill(os.getpid(), signal.SIGKILL) for items in [*lists.values(), None])
        sptx.fit(data, tmp_path / "run", item_features={"k0i0": ["other"]}, overwrite=True, **options)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    assert (tmp_path / "run.items").read_bytes() == before and (tmp_path / "run.items2").exists()
    assert sptx.Run(tmp_path / "run").recommend(list="p0", k=5, among="new")
    for name, left in (("run.items2", "run.items"), ("run.items", "run.items2")):
        run = sptx.fit(lists, tmp_path / "run", item_features=features, overwrite=True, **options)
        assert (tmp_path / name).read_bytes() == before and not (tmp_path / left).exists()
        assert run.recommend(list="p0", k=5, among="new")
    sptx.fit(lists, tmp_path / "run", item_features=features, resume=True, **options)
    assert not (tmp_path / "run.items2").exists()


def test_features_that_are_refused_change_no_file(lists, features, tmp_path):
    def refused(path, error, data=lists, **options):
        with pytest.raises(error):
            sptx.fit(data, path, format="lists", dim=8, epochs=1, progress=False, **options)

    refused(tmp_path / "new", sptx.Error, item_features=features, user_features={"p0": []})
    refused(tmp_path / "new", ZeroDivisionError, (1 / 0 for _ in range(2)), item_features=features)
    assert not list(tmp_path.iterdir())
    sptx.fit(lists, tmp_path / "run", format="lists", dim=8, epochs=1, progress=False, item_features=features)
    before = (tmp_path / "run.items").read_bytes()
    refused(tmp_path / "run", sptx.Error, item_features={"z": []}, overwrite=True)
    assert (tmp_path / "run.items").read_bytes() == before
