"""sptx.implicit beside implicit: its tutorial with only the import changed, its calls, and what is refused."""

import copy
import io
import pickle
import tarfile

import numpy
import pytest

import sptx
import sptx.implicit as implicit
from conftest import TOP
from sptx.implicit import AlternatingLeastSquares, BayesianPersonalizedRanking

sparse = pytest.importorskip("scipy.sparse")
GROUPS, USERS, ITEMS = 4, 120, 48
KINDS = [AlternatingLeastSquares, BayesianPersonalizedRanking]


def plays(seed=1):
    """Listeners of one group hear the artists of their group, and a few others: a matrix of users x items of counts. User 5 and the items 3 and 47
    have no entry."""
    draw = numpy.random.default_rng(seed)
    chance = numpy.where(numpy.arange(USERS)[:, None] % GROUPS == numpy.arange(ITEMS) % GROUPS, 0.6, 0.03)
    counts = (draw.random((USERS, ITEMS)) < chance) * draw.integers(1, 9, (USERS, ITEMS))
    counts[5] = counts[:, 3] = counts[:, 47] = 0
    return sparse.csr_matrix(counts.astype(numpy.float32))


MATRIX = plays()


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: kind.__name__)
def model(request):
    model = request.param(factors=16, random_state=3, use_gpu=False, num_threads=2)
    model.fit(MATRIX, show_progress=False)
    return model


def test_the_tutorial_with_its_import_changed():
    """The steps of implicit's tutorial on last.fm: weights by BM25, fit, answers for a user, for an item, for a thousand users."""
    from sptx.implicit.nearest_neighbours import bm25_weight
    artist_user_plays = bm25_weight(MATRIX.T, K1=100, B=0.8)
    user_plays = artist_user_plays.T.tocsr()
    from sptx.implicit.als import AlternatingLeastSquares
    model = AlternatingLeastSquares(factors=64, regularization=0.05, alpha=2.0, use_gpu=False)
    model.fit(user_plays)
    userid = 12
    ids, scores = model.recommend(userid, user_plays[userid], N=10, filter_already_liked_items=False)
    assert ids.shape == scores.shape == (10,) and (numpy.diff(scores) <= 0).all() and (ids[:8] % GROUPS == userid % GROUPS).all()
    assert numpy.isin(ids, user_plays[userid].indices).sum() > 4
    ids, scores = model.similar_items(25)
    assert ids[0] == 25 and scores[0] == pytest.approx(1, abs=1e-5) and (ids % GROUPS == 1).sum() >= 9
    userids = numpy.arange(100)
    ids, scores = model.recommend(userids, user_plays[userids])
    assert ids.shape == scores.shape == (100, 10)


def test_recommend_answers_from_the_factors(model):
    scores = model.user_factors @ model.item_factors.T
    users = [7, 0, 30]
    ids, found = model.recommend(users, MATRIX[users], N=6)
    for user, got, values in zip(users, ids, found):
        wanted = numpy.where(MATRIX[user].toarray()[0] > 0, -numpy.inf, scores[user])
        assert numpy.allclose(values, -numpy.sort(-wanted)[:6], atol=1e-6) and numpy.allclose(values, wanted[got], atol=1e-6)
        one, its = model.recommend(user, MATRIX[user], N=6)
        assert one.tolist() == got.tolist() and numpy.allclose(its, values, atol=1e-6)
    assert model.recommend(7, None, N=ITEMS, filter_already_liked_items=False)[0].tolist() == numpy.argsort(-scores[7], kind="stable").tolist()
    some, _ = model.recommend(7, MATRIX[7], N=ITEMS, items=[40, 1, 2, 9], filter_already_liked_items=False)
    assert some.tolist() == sorted([40, 1, 2, 9], key=lambda item: -scores[7][item])
    without, values = model.recommend(7, MATRIX[7], N=4, filter_items=ids[0][:2])
    assert not set(ids[0][:2]) & set(without) and numpy.allclose(values, found[0][2:], atol=1e-6)
    liked = MATRIX[7].indices
    few, lowest = model.recommend(7, MATRIX[7], N=3, items=[liked[0], 47, liked[1]])
    assert few.tolist() == [47, *liked[:2]] and (lowest[1:] == numpy.finfo(numpy.float32).min).all()
    with pytest.warns(DeprecationWarning):
        assert model.rank_items(7, MATRIX[7], [40, 1, 2, 9])[0].tolist() == some.tolist()


def test_factors_are_the_runs_rows(model):
    unit = isinstance(model, AlternatingLeastSquares)
    for factors, name, table in ((model.user_factors[9], "list:9", "target"), (model.item_factors[11], "11", "context")):
        row = model.run.vectors([name], table=table)[0]
        assert numpy.allclose(factors, row / numpy.linalg.norm(row) if unit else row, atol=1e-6)
    assert model.user_factors.shape == (USERS, 16) and model.item_factors.shape == (ITEMS, 16)
    assert not model.user_factors[5].any() and not model.item_factors[[3, 47]].any()
    assert model.item_factors[[i for i in range(ITEMS) if i not in (3, 47)]].any(1).all()


def test_similar_users_and_items(model):
    unit = model.user_factors / numpy.maximum(numpy.linalg.norm(model.user_factors, axis=1, keepdims=True), 1e-10)
    ids, scores = model.similar_users([4, 9], N=5)
    assert ids[:, 0].tolist() == [4, 9] and numpy.allclose(scores[1], (unit @ unit[9])[ids[1]], atol=1e-5) and (ids[0] % GROUPS == 0).all()
    assert 9 not in model.similar_users(9, N=5, filter_users=[9])[0] and set(model.similar_users(9, users=[8, 2])[0]) == {8, 2}
    ids, _ = model.similar_items([8, 9], N=4, filter_items=[8])
    assert 8 not in ids and ids[1][0] == 9 and ids.shape == (2, 4)


def test_a_user_is_recalculated(model):
    """A new listener of a group's artists gets others of the group, and the stored rows stay."""
    before = model.user_factors.copy()
    new = sparse.csr_matrix((numpy.ones(6), ([0] * 3 + [1] * 3, [0, 4, 8, 1, 5, 9])), shape=(2, ITEMS))
    ids, _ = model.recommend([500, 501], new, N=5, recalculate_user=True)
    assert (ids[0] % GROUPS == 0).all() and (ids[1] % GROUPS == 1).all() and not {0, 4, 8} & set(ids[0])
    assert numpy.array_equal(model.user_factors, before)
    rows = model.recalculate_user([500, 501], new)
    assert numpy.array_equal(model.recalculate_user(500, new[0]), rows[0]) and rows.shape == (2, 16)
    assert numpy.array_equal(rows[1], model.run.infer([1, 5, 9]))
    assert all(rows[1] @ model.item_factors[int(name)] == pytest.approx(score, abs=1e-4) for name, score in model.run.recommend([1, 5, 9], k=5))
    with pytest.raises(ValueError, match="are those of documents"):
        model.run.infer([1, 5, 9], epochs=2)
    other = copy.deepcopy(model)
    other.partial_fit_users([2, USERS + 3], new)
    assert other.user_factors.shape == (USERS + 4, 16) and numpy.array_equal(other.user_factors[[2, USERS + 3]], rows)
    assert not other.user_factors[USERS:USERS + 3].any() and numpy.array_equal(model.user_factors, before)
    assert numpy.array_equal(other.recommend(USERS + 3, new[1], N=5)[0], ids[1])


@pytest.mark.parametrize("through", ["file", "path", "pickle"])
def test_a_model_is_saved(model, tmp_path, through):
    if through == "pickle":
        again = pickle.loads(pickle.dumps(model))
    elif through == "path":
        model.save(str(tmp_path / "model"))
        again = type(model).load(str(tmp_path / "model"))
    else:
        file = io.BytesIO()
        model.save(file)
        file.seek(0)
        again = type(model).load(file)
    assert numpy.array_equal(again.item_factors, model.item_factors) and again.factors == 16 and again.dtype == numpy.float32
    assert again.recommend(7, MATRIX[7])[0].tolist() == model.recommend(7, MATRIX[7])[0].tolist()
    assert numpy.array_equal(again.recalculate_user(0, MATRIX[7]), model.recalculate_user(0, MATRIX[7]))


def test_files_of_others(tmp_path):
    """A file of implicit's own, which has no run; and one whose run would be written elsewhere."""
    factors = {"user_factors": numpy.eye(3, dtype=numpy.float32), "item_factors": numpy.eye(3, dtype=numpy.float32)[[2, 0, 1]]}
    numpy.savez(tmp_path / "theirs.npz", dtype="float32", cg_steps=3, alpha=1.0, factors=3, **factors)
    model = AlternatingLeastSquares.load(tmp_path / "theirs.npz")
    assert model.recommend(0, None, N=1, filter_already_liked_items=False)[0].tolist() == [1]
    with pytest.raises(ValueError, match="no run"):
        model.recalculate_user(0, MATRIX[0])
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("run/../../evil"))
    numpy.savez(tmp_path / "evil.npz", sptx_run=numpy.frombuffer(packed.getvalue(), numpy.uint8), **factors)
    with pytest.raises(ValueError, match="no file of a run"):
        AlternatingLeastSquares.load(tmp_path / "evil.npz")


@pytest.mark.parametrize("kind", [AlternatingLeastSquares, BayesianPersonalizedRanking])
def test_many_answers_come_from_the_run(kind, monkeypatch):
    """They are those of NumPy, also where fewer items than asked have scores above 0, and where rows are no longer the run's."""
    model = kind(factors=8, iterations=3, random_state=1, use_gpu=False, num_threads=1)
    model.fit(MATRIX.multiply(MATRIX > 0).tocsr(), show_progress=False)
    everyone, called = numpy.arange(MATRIX.shape[0]), []
    search = type(model.run).search
    monkeypatch.setattr(type(model.run), "search", lambda *args, **options: called.append(1) or search(*args, **options))
    for change, found in ((None, 1), ("user_factors", 1), ("item_factors", 0)):
        if change:
            getattr(model, change)[:5] *= 1.5
        for count, liked in ((5, True), (5, False), (MATRIX.shape[1], True)):
            wanted = model.recommend(everyone, MATRIX, N=count, filter_already_liked_items=liked)
            called.clear()
            with monkeypatch.context() as few:
                few.setattr(implicit._models, "_AT_ONCE", 1)
                few.setattr(implicit._models, "_TOGETHER", 7)
                ids, scores = model.recommend(everyone, MATRIX, N=count, filter_already_liked_items=liked)
            assert bool(called) == found
            assert numpy.allclose(scores, wanted[1], atol=1e-5) and (ids == wanted[0]).mean() > 0.99


def test_values_are_confidences():
    """A pair with a greater confidence counts for more, and a common factor changes nothing."""
    counts = sparse.csr_matrix(MATRIX.multiply(MATRIX > 0))
    options = dict(factors=8, iterations=5, random_state=1, use_gpu=False, num_threads=1)
    models = [AlternatingLeastSquares(alpha=alpha, **options) for alpha in (1, 16)] + [AlternatingLeastSquares(**options)]
    for model, matrix in zip(models, (counts, counts, counts > 0)):
        model.fit(matrix.astype(float), show_progress=False)
    assert numpy.array_equal(models[0].item_factors, models[1].item_factors)
    assert not numpy.array_equal(models[0].item_factors, models[2].item_factors)
    assert models[0].run._key("train", "epochs") == "60" and models[0].run._key("corpus", "weights") == "linear"


def test_arguments_reach_the_run():
    model = BayesianPersonalizedRanking(factors=8, learning_rate=0.03, regularization=0.2, dtype=numpy.float64, iterations=3,
                                        verify_negative_samples=False, random_state=numpy.random.RandomState(5), use_gpu=False, num_threads=1,
                                        keys={"negatives.count": 7})
    model.fit(MATRIX, show_progress=False)
    keys = {"model.dim": "8", "optimizer.lr": "0.03", "optimizer.weight_decay": "0.2", "train.epochs": "3", "negatives.exclude": "no",
            "negatives.count": "7", "train.loss": "bpr", "train.seed": str(numpy.random.RandomState(5).randint(2**31))}
    assert {key: model.run._key(*key.split(".")) for key in keys} == keys and model.item_factors.dtype == numpy.float64


@pytest.mark.parametrize("wrong, error, said", [
    (lambda: AlternatingLeastSquares(use_cg=False), NotImplementedError, "use_cg"),
    (lambda: AlternatingLeastSquares(use_native=False), NotImplementedError, "use_native"),
    (lambda: BayesianPersonalizedRanking(iterations=0), ValueError, "iterations = 0"),
    (lambda: AlternatingLeastSquares(alpha=0), ValueError, "alpha = 0"),
    (lambda: AlternatingLeastSquares(alpha=numpy.inf), ValueError, "alpha = inf"),
    (lambda: AlternatingLeastSquares(dtype=numpy.int32), ValueError, "floating type"),
    (lambda: AlternatingLeastSquares(random_state="a").fit(MATRIX), TypeError, "random_state is 'a'"),
    (lambda: AlternatingLeastSquares().fit(MATRIX, callback=print), NotImplementedError, "callback is not there"),
    (lambda: AlternatingLeastSquares().fit(-MATRIX), NotImplementedError, "negative values"),
    (lambda: AlternatingLeastSquares().fit(MATRIX * numpy.nan), ValueError, "not all values"),
    (lambda: AlternatingLeastSquares().fit(MATRIX * 0), ValueError, "no interaction"),
    (lambda: AlternatingLeastSquares().fit([[1, 0]]), TypeError, "sparse matrix"),
    (lambda: AlternatingLeastSquares().recommend(0, MATRIX[0]), ValueError, "call fit"),
    (lambda: AlternatingLeastSquares().partial_fit_items([0], MATRIX[0]), NotImplementedError, "partial_fit_items"),
    (lambda: AlternatingLeastSquares().similar_items(0, recalculate_item=True), NotImplementedError, "recalculate_item"),
    (lambda: AlternatingLeastSquares().explain(0, MATRIX, 1), NotImplementedError, "explain"),
    (lambda: implicit.lmf, AttributeError, "als.AlternatingLeastSquares"),
    (lambda: implicit.nearest_neighbours.CosineRecommender, AttributeError, "similar_items"),
])
def test_what_is_not_there_is_refused_by_a_sentence(wrong, error, said):
    with pytest.raises(error, match=said):
        wrong()


def test_wrong_questions(model):
    wide, below = sparse.csr_matrix(([1.0], ([0], [ITEMS + 1])), shape=(1, ITEMS + 2)), MATRIX[0].copy()
    below.indices[0] = -5
    for wrong, error, said in [(lambda: model.recommend(0, MATRIX), ValueError, "1 row for every user"),
                               (lambda: model.recommend(0, MATRIX[0].tocsc()), ValueError, "CSR"),
                               (lambda: model.recommend(USERS, MATRIX[0]), IndexError, "users are 0 to 119"),
                               (lambda: model.similar_items(-1), IndexError, "items are 0 to 47"),
                               (lambda: model.recommend(0, MATRIX[0], items=[ITEMS]), IndexError, "not among them"),
                               (lambda: model.recommend(0, MATRIX[0], items=[1], filter_items=[2]), ValueError, "both"),
                               (lambda: model.recalculate_user([0, 1], MATRIX[0]), ValueError, "one row"),
                               (lambda: model.recalculate_user(0, MATRIX[0].tocoo()), ValueError, "CSR"),
                               (lambda: model.recommend(0, MATRIX[0], N=-1), ValueError, "N = -1"),
                               (lambda: model.recommend(0, wide), IndexError, "columns 49 to 49, and the model has items 0 to 47"),
                               (lambda: model.recommend(0, below), IndexError, "columns -5 to"),
                               (lambda: model.recommend(0, MATRIX[0], filter_items=[1.5]), TypeError, "item ids are float64"),
                               (lambda: model.similar_items("a"), TypeError, "wanted one whole number"),
                               (lambda: model.similar_users(True), TypeError, "wanted one whole number"),
                               (lambda: model.partial_fit_users([-1], MATRIX[0]), IndexError, "one of those is -1")]:
        with pytest.raises(error, match=said):
            wrong()
    rows = model.user_factors.copy()
    model.partial_fit_users([], MATRIX[:0])
    assert numpy.array_equal(rows, model.user_factors) and model.recommend([], MATRIX[:0], N=3)[0].shape == (0, 3)


@pytest.mark.parametrize("damage", [lambda bytes: bytes[:len(bytes) // 2], lambda bytes: b"", lambda bytes: b"text", lambda bytes: {"dtype": "zork"},
                                    lambda bytes: bytes[:len(bytes) // 3] + bytes[len(bytes) // 3 + 1:], lambda bytes: {"sptx_run": numpy.zeros(9)},
                                    lambda bytes: {"item_factors": numpy.eye(2)}, lambda bytes: {"user_factors": numpy.full((3, 3), numpy.nan)},
                                    lambda bytes: {"user_factors": numpy.array([None])}, lambda bytes: numpy.eye(2)])
def test_damaged_files(model, tmp_path, damage):
    path = tmp_path / "model.npz"
    model.save(path)
    made = damage(path.read_bytes())
    if isinstance(made, bytes):
        path.write_bytes(made)
    else:
        with open(path, "wb") as file:
            if isinstance(made, dict):
                numpy.savez(file, **{"user_factors": numpy.eye(3), "item_factors": numpy.eye(3), **made})
            else:
                numpy.save(file, made)
    with pytest.raises(ValueError, match="model.npz' holds"):
        type(model).load(path)


def test_a_file_changes_nothing_but_values(model, tmp_path):
    numpy.savez(tmp_path / "file.npz", recommend=1, run=2, _place=3, user_factors=numpy.eye(3), item_factors=numpy.eye(3))
    again = type(model).load(tmp_path / "file.npz")
    assert callable(again.recommend) and again._place is None


def test_a_save_that_fails_leaves_the_older_file(model, tmp_path, monkeypatch):
    model.save(tmp_path / "model")
    before = (tmp_path / "model.npz").read_bytes()

    def fail(file, **values):
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(numpy, "savez", fail)
    with pytest.raises(OSError, match="disk full"):
        model.save(tmp_path / "model")
    assert (tmp_path / "model.npz").read_bytes() == before and [path.name for path in tmp_path.iterdir()] == ["model.npz"]


def test_measures_and_splits_are_implicits(model):
    """Measures by hand for a model with known answers; the same as implicit's own, if it is installed."""
    class Known:
        def recommend(self, users, user_items, N):
            return numpy.array([[0, 1, 2], [3, 0, 4]])[:len(users)], None
    held = sparse.csr_matrix(([1, 1, 1, 1], ([0, 0, 1, 1], [1, 2, 3, 5])), shape=(2, 6))
    found = implicit.evaluation.ranking_metrics_at_k(Known(), held, held, K=3)
    log = numpy.log2
    first = (1 / log(3) + 1 / log(4)) / (1 + 1 / log(3))
    assert found == pytest.approx({"precision": 3 / 4, "map": ((1 / 2 + 2 / 3) / 2 + 1 / 2) / 2, "ndcg": (first + 1 / (1 + 1 / log(3))) / 2,
                                   "auc": ((0 + 2 * 3) / 8 + (2 + 1.5 * 2) / 8) / 2})
    train, test = implicit.evaluation.train_test_split(MATRIX, 0.7, random_state=1)
    assert train.nnz + test.nnz == MATRIX.nnz and (train + test != MATRIX).nnz == 0 and 0.6 < train.nnz / MATRIX.nnz < 0.8
    train, test = implicit.evaluation.leave_k_out_split(MATRIX, K=2, random_state=1)
    enough = numpy.diff(MATRIX.indptr) > 3
    assert (train + test != MATRIX).nnz == 0 and (numpy.diff(test.indptr) == 2 * enough).all()
    assert 0.1 < (numpy.diff(implicit.evaluation.leave_k_out_split(MATRIX, 2, 0.5, 1)[1].indptr) > 0).mean() < 0.9
    found = implicit.evaluation.ranking_metrics_at_k(model, train, test, K=5)
    assert implicit.evaluation.ndcg_at_k(model, train, test, K=5) == found["ndcg"]
    assert implicit.evaluation.AUC_at_k(model, train, test, K=5) == found["auc"]


def test_measures_are_those_of_implicit_itself(model):
    theirs = pytest.importorskip("implicit.evaluation")
    train, test = implicit.evaluation.leave_k_out_split(MATRIX, K=2, random_state=1)
    assert implicit.evaluation.ranking_metrics_at_k(model, train, test, K=5) == pytest.approx(
        theirs.ranking_metrics_at_k(model, train, test, K=5, show_progress=False))


def test_implicit_itself_loads_a_model(model, tmp_path):
    theirs = pytest.importorskip("implicit.cpu.als").AlternatingLeastSquares
    model.save(tmp_path / "model.npz")
    ids, scores = theirs.load(str(tmp_path / "model.npz")).recommend(7, MATRIX[7], N=5)
    assert numpy.allclose(scores, model.recommend(7, MATRIX[7], N=5)[1], atol=1e-6)


def test_books_are_found_as_by_implicit_itself():
    """Both models of both packages, with their defaults, on the readers of goodbooks."""
    theirs = [pytest.importorskip("implicit.cpu.als").AlternatingLeastSquares, pytest.importorskip("implicit.cpu.bpr").BayesianPersonalizedRanking]
    lists = [[line.split() for line in open(path)] for path in (TOP.parent / "shared" / "data" / "items" / ("goodbooks.%s.txt" % name)
                                                                for name in ("train", "test")) if path.exists()]
    if not lists:
        pytest.skip("no goodbooks in ../shared/data")
    users = {line[0]: row for row, line in enumerate(lists[0])}
    train, test = (sparse.csr_matrix((numpy.ones(sum(map(len, part)) - len(part), numpy.float32),
                                      tuple(numpy.array([(users[line[0]], int(item)) for line in part for item in line[1:]]).T)),
                                     shape=(len(users), 10_001)) for part in lists)
    for ours, other in zip(KINDS, theirs):
        found = []
        for kind in (ours, other):
            model = kind(random_state=1)
            model.fit(train, show_progress=False)
            found.append(implicit.evaluation.ndcg_at_k(model, train, test, K=20))
        print(ours.__name__, found)
        assert found[0] >= found[1]


def test_held_out_items_are_found():
    train, test = implicit.evaluation.train_test_split(MATRIX, random_state=2)
    for kind in KINDS:
        model = kind(factors=16, random_state=3, use_gpu=False)
        model.fit(train, show_progress=False)
        assert implicit.evaluation.precision_at_k(model, train, test, K=5) > 0.5  # by chance: 0.07


def test_messages_name_arguments_but_keys_that_the_user_has_given():
    for keys, said in (({}, "^regularization = '-1.0' is not"), ({"optimizer.weight_decay": -1}, "optimizer.weight_decay = '-1' is not")):
        with pytest.raises(ValueError, match=said):
            AlternatingLeastSquares(factors=4, regularization=-1, keys=keys).fit(plays(), show_progress=False)
    with pytest.raises(sptx.Error, match="lower learning_rate or train.batch"):
        BayesianPersonalizedRanking(factors=4, learning_rate=1e6).fit(plays(), show_progress=False)
