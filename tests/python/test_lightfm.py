"""sptx.lightfm beside LightFM: its tutorials with only the import changed, its calls, and what is refused."""

import pickle

import numpy
import pytest

import sptx.lightfm
from conftest import TOP
from sptx.lightfm import LightFM
from sptx.lightfm.cross_validation import random_train_test_split
from sptx.lightfm.data import Dataset
from sptx.lightfm.evaluation import auc_score, precision_at_k, recall_at_k, reciprocal_rank

sparse = pytest.importorskip("scipy.sparse")
GROUPS, USERS, ITEMS = 4, 120, 48
OPTIONS = dict(no_components=8, random_state=3, device="cpu")


def films(seed=1):
    """Viewers of a group like the films of their group, and a few others: (train, test), COO matrices. User 5 and the films 3
    and 47 have no entry."""
    draw = numpy.random.default_rng(seed)
    chance = numpy.where(numpy.arange(USERS)[:, None] % GROUPS == numpy.arange(ITEMS) % GROUPS, 0.7, 0.03)
    likes = (draw.random((USERS, ITEMS)) < chance).astype(numpy.int32)
    likes[5] = likes[:, 3] = likes[:, 47] = 0
    return random_train_test_split(sparse.coo_matrix(likes), 0.25, numpy.random.RandomState(2))


TRAIN, TEST = films()


@pytest.fixture(scope="module", params=["warp", "bpr", "logistic"])
def model(request):
    return LightFM(loss=request.param, **OPTIONS).fit(TRAIN, epochs=30, num_threads=2)


def test_the_quickstart_with_its_import_changed():
    """The steps of LightFM's quickstart on MovieLens: fit, precision of both halves, the films of a user."""
    model = LightFM(loss='warp')
    model.fit(TRAIN, epochs=30, num_threads=2)
    train, test = precision_at_k(model, TRAIN, k=5).mean(), precision_at_k(model, TEST, train_interactions=TRAIN, k=5).mean()
    assert train > 0.6 and test > 0.3  # by chance 0.15 and 0.05; a viewer has 2.4 films of TEST that could be found in each five
    assert auc_score(model, TEST, train_interactions=TRAIN).mean() > 0.85
    n_users, n_items = TRAIN.shape
    for user_id in [3, 25, 110]:
        known_positives = TRAIN.tocsr()[user_id].indices
        scores = model.predict(user_id, numpy.arange(n_items))
        assert (numpy.argsort(-scores)[:8] % GROUPS == user_id % GROUPS).sum() >= 7 and len(known_positives)


def test_the_tutorial_of_datasets_with_its_import_changed():
    """The steps of LightFM's tutorial on books: numbers for names, interactions, features, a model."""
    ratings = [{"User-ID": "u%d" % user, "ISBN": "b%d" % item} for user, item in zip(TRAIN.row, TRAIN.col)]
    books = [{"ISBN": "b%d" % item, "Book-Author": "a%d" % (item % GROUPS)} for item in range(ITEMS + 2)]
    dataset = Dataset()
    dataset.fit((x['User-ID'] for x in ratings), (x['ISBN'] for x in ratings))
    num_users, num_items = dataset.interactions_shape()
    assert (num_users, num_items) == (USERS - 1, ITEMS - 2)
    dataset.fit_partial(items=(x['ISBN'] for x in books), item_features=(x['Book-Author'] for x in books))
    (interactions, weights) = dataset.build_interactions(((x['User-ID'], x['ISBN']) for x in ratings))
    assert interactions.shape == weights.shape == (num_users, ITEMS + 2) and interactions.dtype == numpy.int32 and interactions.nnz == TRAIN.nnz
    item_features = dataset.build_item_features(((x['ISBN'], [x['Book-Author']]) for x in books))
    assert item_features.shape == (ITEMS + 2, ITEMS + 2 + GROUPS) == dataset.item_features_shape() and item_features.format == "csr"
    assert (item_features.data == 0.5).all() and (item_features.getnnz(axis=1) == 2).all()
    model = LightFM(loss='bpr', **OPTIONS).fit(interactions, sample_weight=weights)
    users, _, items, features = dataset.mapping()
    assert items["b0"] < num_items <= items["b47"] and features["a3"] >= ITEMS + 2 and dataset.model_dimensions() == (num_users, ITEMS + 2 + GROUPS)
    best = numpy.argsort(-model.predict(users["u8"], numpy.arange(ITEMS + 2)))[:6]
    assert {int(name[1:]) % GROUPS for name, number in items.items() if number in best} == {0}


def test_a_dataset_refuses_names_that_it_does_not_know():
    dataset = Dataset(item_identity_features=False)
    dataset.fit(["x", "y"], ["p", "q"], user_features=["old"], item_features=["red", "blue"])
    assert dataset.user_features_shape() == (2, 3) and dataset.item_features_shape() == (2, 2)
    features = dataset.build_item_features([("p", {"red": 3, "blue": 1}), ("q", ["blue"])])
    assert features.toarray().tolist() == [[0.75, 0.25], [0, 1]]
    assert dataset.build_user_features([("y", ["old"])], normalize=False).toarray().tolist() == [[1, 0, 0], [0, 1, 1]]
    _, weights = dataset.build_interactions([("x", "q", 2.5), ("y", "p")])
    assert weights.toarray().tolist() == [[0, 2.5], [1, 0]]
    for wrong, said in [(lambda: dataset.build_interactions([("z", "p")]), "User id z not in"),
                        (lambda: dataset.build_interactions([("x",)]), "tuples"),
                        (lambda: dataset.build_item_features([("p", ["green"]), ("q", ["red"])]), "Feature green not in"),
                        (lambda: dataset.build_item_features([("r", ["red"])]), "Item id r not in"),
                        (lambda: dataset.build_item_features([("p", ["red"])]), "zero norm")]:
        with pytest.raises(ValueError, match=said):
            wrong()
    dataset.fit(["x"], ["p"])
    assert dataset.interactions_shape() == (1, 1)


def test_scores_are_products_of_rows(model):
    biases, rows = model.get_item_representations()
    own, users = model.get_user_representations(features=sparse.identity(USERS))
    assert rows.shape == (ITEMS, 8) and users.shape == (USERS, 8) and not biases.any() and not own.any()
    assert numpy.allclose(users[5], numpy.delete(users, 5, 0).mean(0), atol=1e-6) and not rows[[3, 47]].any() and rows[[0, 1, 2]].any(1).all()
    pairs = [4, 4, 9], [1, 0, 7]
    assert numpy.allclose(model.predict(*pairs), (users[pairs[0]] * rows[pairs[1]]).sum(1), atol=1e-6)
    assert numpy.array_equal(model.predict(4, [1, 0]), model.predict(*pairs)[:2])
    row = model.run.vectors(["list:9"], table="target")[0]
    assert numpy.allclose(users[9], row / numpy.linalg.norm(row) if model.loss == "warp" else row, atol=1e-6)
    model.item_biases[7] = 10
    assert numpy.argmax(model.predict(4, numpy.arange(ITEMS))) == 7
    model.item_biases *= 0
    again = pickle.loads(pickle.dumps(model))
    assert numpy.array_equal(again.predict(*pairs), model.predict(*pairs)) and "46" in again.run


def test_measures_by_hand():
    class Known:
        def predict_rank(self, test, **_):
            return sparse.csr_matrix((numpy.array([0, 3, 1], numpy.float32), ([0, 0, 2], [4, 1, 0])), shape=(3, 6))
    test = sparse.coo_matrix(([1, 1, 1], ([0, 0, 2], [4, 1, 0])), shape=(3, 6))
    train = sparse.coo_matrix(([1], ([2], [5])), shape=(3, 6))
    assert precision_at_k(Known(), test, k=2).tolist() == [0.5, 0.5]
    assert precision_at_k(Known(), test, k=2, preserve_rows=True).tolist() == [0.5, 0, 0.5]
    assert recall_at_k(Known(), test, k=2).tolist() == [0.5, 1] and reciprocal_rank(Known(), test, preserve_rows=True).tolist() == [1, 0, 0.5]
    assert auc_score(Known(), test, train).tolist() == [0.75, 0.75]  # 4 others, of which 0 and 2 are above; 4 others, of which 1 is
    assert auc_score(Known(), test, train, preserve_rows=True).tolist() == [0.75, 0.5, 0.75]


def test_ranks(model):
    ranks = model.predict_rank(TEST, TRAIN)
    train = TRAIN.toarray()
    for user, item, rank in zip(*ranks.nonzero(), ranks.data):
        scores = model.predict(user, numpy.arange(ITEMS))
        better = (scores >= scores[item]) & (train[user] == 0) & (numpy.arange(ITEMS) != item)
        assert ranks[user, item] == better.sum()
    with pytest.raises(ValueError, match="share %d interactions" % TRAIN.nnz):
        model.predict_rank(TRAIN, TRAIN)
    assert model.predict_rank(TRAIN, TRAIN, check_intersections=False).nnz


def test_measures_are_those_of_lightfm_itself(model):
    theirs = pytest.importorskip("lightfm.evaluation")
    other = pytest.importorskip("lightfm").LightFM(no_components=8).fit(TRAIN)
    biases, rows = model.get_item_representations()
    other.item_embeddings, other.user_embeddings, other.item_biases, other.user_biases = rows, model.user_embeddings, biases, model.user_biases
    for name in "precision_at_k", "recall_at_k", "auc_score", "reciprocal_rank":
        ours = getattr(sptx.lightfm.evaluation, name)(model, TEST, TRAIN)
        assert numpy.allclose(ours, getattr(theirs, name)(other, TEST, TRAIN), atol=2e-3), name
    for test in (pytest.importorskip("lightfm.cross_validation").random_train_test_split(TRAIN, 0.3, 5)[1],):
        assert (random_train_test_split(TRAIN, 0.3, 5)[1].tocsr() != test.tocsr()).nnz == 0


def test_training_goes_on():
    model = LightFM(loss="warp", **OPTIONS)
    found = []
    for _ in range(6):
        assert model.fit_partial(TRAIN, epochs=1) is model
        found.append(recall_at_k(model, TEST, TRAIN).mean())
    assert found[-1] > found[0] > 0.7
    once = model.item_embeddings
    model.fit(TRAIN, epochs=1)
    assert recall_at_k(model, TEST, TRAIN).mean() < found[-1] and not numpy.array_equal(once, model.item_embeddings)
    with pytest.raises(ValueError, match="trained on 120 users and 48 items"):
        model.fit_partial(TRAIN.tocsr()[:10])


def test_weights_and_arguments_reach_the_run():
    weights = sparse.coo_matrix((numpy.where(TRAIN.col < 24, 9.0, 1.0), (TRAIN.row, TRAIN.col)), shape=TRAIN.shape)
    model = LightFM(loss="warp", learning_rate=0.1, item_alpha=0.01, user_alpha=0.002, max_sampled=20, keys={"train.temperature": 0.7}, **OPTIONS)
    model.fit(TRAIN, sample_weight=weights, epochs=50, num_threads=1)
    keys = {"corpus.weights": "linear", "optimizer.weight_decay": "0.01", "negatives.count": "20", "train.temperature": "0.7", "train.epochs": "80",
            "optimizer.lr": "0.064", "model.dim": "8", "train.loss": "softmax"}
    assert {key: model.run._key(*key.split(".")) for key in keys} == keys
    assert model.get_params()["max_sampled"] == 20 and model.set_params(max_sampled=10, loss="bpr", learning_schedule="adadelta", rho=0.9) is model
    model.fit(TRAIN, epochs=2)
    keys = {"optimizer.rule": "adadelta", "optimizer.rho": "0.9", "optimizer.lr": "1", "train.epochs": "16", "corpus.weights": "none",
            "train.loss": "bpr"}
    assert {key: model.run._key(*key.split(".")) for key in keys} == keys


@pytest.fixture(scope="module")
def hybrid():
    """A model of films with two features, their group and a random one, beside their own; and the matrix of features."""
    dataset, draw = Dataset(), numpy.random.default_rng(4)
    dataset.fit(range(USERS), range(ITEMS), item_features=["g0", "g1", "g2", "g3", *("x%d" % x for x in range(6))])
    features = dataset.build_item_features((item, ["g%d" % (item % GROUPS), "x%d" % draw.integers(6)]) for item in range(ITEMS))
    return LightFM(loss="warp", **OPTIONS).fit(TRAIN, item_features=features, epochs=30), features


def test_films_of_no_interaction_are_scored_by_their_features(hybrid):
    """The films 3 and 47 are of the last group: its viewers score them above the others'."""
    model, features = hybrid
    biases, rows = model.get_item_representations(features)
    plain = LightFM(loss="warp", **OPTIONS).fit(TRAIN, epochs=30)
    trained = [item for item in range(ITEMS) if item not in (3, 47)]
    assert not biases.any() and numpy.array_equal(rows[trained], plain.item_embeddings[trained])  # training does not change
    assert rows[[3, 47]].any(1).all() and not plain.item_embeddings[[3, 47]].any()
    for film in 3, 47:
        scores = model.predict(numpy.arange(USERS), numpy.repeat(film, USERS), item_features=features)
        assert scores[3::GROUPS].mean() > numpy.delete(scores, numpy.s_[3::GROUPS]).mean() + 0.1
    assert auc_score(model, TEST, TRAIN, item_features=features).mean() > 0.85
    film = sparse.csr_matrix((numpy.ones(2), ([7, 11], [47, 3])), shape=TRAIN.shape)
    assert model.predict_rank(film, TRAIN, features).max() < ITEMS / 2
    with pytest.raises(ValueError, match="share is 2"):
        LightFM(loss="warp", new_share=2, **OPTIONS).fit(TRAIN, item_features=features, epochs=2)


def test_embeddings_of_features(hybrid):
    """As in LightFM's example of tags: the films that are most like a feature have it. And a film of no row in fit()."""
    model, features = hybrid
    rows = model.item_embeddings / numpy.maximum(numpy.linalg.norm(model.item_embeddings, axis=1, keepdims=True), 1e-10)
    assert model.item_embeddings.shape == (ITEMS + 10, 8) and len(model.item_biases) == ITEMS + 10
    for group in range(GROUPS):
        assert {item % GROUPS for item in numpy.argsort(-rows[:ITEMS] @ rows[ITEMS + group])[:6]} == {group}
    new = sparse.csr_matrix(([1.0, 1.0], ([0, 1], [ITEMS + 2, ITEMS + 1])), shape=(2, ITEMS + 10))
    _, found = model.get_item_representations(new)
    assert [int(numpy.argmax(rows[ITEMS:ITEMS + GROUPS] @ row)) for row in found] == [2, 1]
    again = pickle.loads(pickle.dumps(model))
    assert numpy.allclose(again.get_item_representations(new)[1], found, atol=1e-6)
    assert numpy.array_equal(again.get_item_representations(features)[1], model.get_item_representations(features)[1])
    for wrong, error, said in [(lambda: model.get_item_representations(new[:, 1:]), ValueError, "57 columns"),
                               (lambda: model.fit(TRAIN, item_features=new), ValueError, "2 rows"),
                               (lambda: LightFM(**OPTIONS).fit(TRAIN, user_features=sparse.csr_matrix(numpy.ones((USERS, 2)))), NotImplementedError,
                                "user_features")]:
        with pytest.raises(error, match=said):
            wrong()


@pytest.mark.parametrize("loss", ["warp", "bpr", "logistic"])
@pytest.mark.filterwarnings("ignore:the data has")
def test_a_user_may_have_all_items(loss):
    for likes in [[1, 1, 1], [0, 1, 0]], [[1, 0], [0, 1]]:
        assert numpy.isfinite(LightFM(loss=loss, **OPTIONS).fit(sparse.coo_matrix(likes), epochs=3).predict(0, [0, 1])).all()


def test_entries_that_are_not_above_zero():
    signed = TRAIN.copy().astype(numpy.float32)
    signed.data[::9] = -1
    model = LightFM(loss="warp", **OPTIONS).fit(signed, epochs=2)
    assert model.run.counts.sum() == (signed.data > 0).sum()
    with pytest.raises(NotImplementedError, match="no negative interactions"):
        LightFM(loss="logistic").fit(signed)


@pytest.mark.parametrize("wrong, error, said", [
    (lambda: LightFM(loss="warp-kos"), NotImplementedError, "take loss='warp'"),
    (lambda: LightFM(loss="warp", k=3), NotImplementedError, "warp-kos"),
    (lambda: LightFM(loss="wrap"), ValueError, "wanted logistic, warp or bpr"),
    (lambda: LightFM(rho=0.5), NotImplementedError, "adadelta"),
    (lambda: LightFM(loss="bpr", max_sampled=30), NotImplementedError, "'negatives.count': 30"),
    (lambda: LightFM(item_alpha=-1), ValueError, "alphas"),
    (lambda: LightFM().set_params(components=3), ValueError, "Invalid parameter components"),
    (lambda: LightFM().predict(0, [1]), ValueError, "must fit the model"),
    (lambda: LightFM(loss="warp").fit(TRAIN, num_threads=0), ValueError, "1 or larger"),
    (lambda: LightFM(loss="warp").fit(TRAIN * numpy.nan), ValueError, "finite"),
    (lambda: LightFM(loss="warp").fit(TRAIN, epochs=0), ValueError, "epochs = 0"),
    (lambda: LightFM(loss="warp").fit(TRAIN, epochs=1.5), ValueError, "epochs = 1.5"),
    (lambda: LightFM(loss="warp").fit(TRAIN.toarray()), TypeError, "interactions is a ndarray; wanted a sparse matrix"),
    (lambda: LightFM(loss="warp").fit(TRAIN, item_features=numpy.eye(ITEMS)), TypeError, "item_features is a ndarray"),
    (lambda: LightFM(loss="warp").fit(TRAIN, item_features=sparse.csr_matrix(numpy.full((ITEMS, 2), numpy.nan))), ValueError, "finite"),
    (lambda: LightFM(loss="warp").fit(TRAIN, item_features=2 * sparse.identity(ITEMS)), ValueError, "0 items with interactions have a feature"),
    (lambda: LightFM(loss="warp").fit(TRAIN, item_features=sparse.csr_matrix((ITEMS, 0))), ValueError, "at least 20 are needed"),
    (lambda: random_train_test_split(TRAIN, 2.0), ValueError, "test_percentage = 2"),
    (lambda: LightFM(loss="warp").fit(TRAIN * 0), ValueError, "no interaction"),
    (lambda: LightFM(loss="warp").fit(TRAIN, sample_weight=TRAIN.tocsr()), ValueError, "COO"),
    (lambda: LightFM(loss="warp").fit(TRAIN, sample_weight=-TRAIN), NotImplementedError, "negative values"),
    (lambda: LightFM(loss="warp").fit(TRAIN, sample_weight=TEST), ValueError, "same order"),
    (lambda: sptx.lightfm.datasets, AttributeError, "data.Dataset"),
])
def test_what_is_not_there_is_refused_by_a_sentence(wrong, error, said):
    with pytest.raises(error, match=said):
        wrong()


def test_wrong_questions(model):
    for wrong, said in [(lambda: model.predict([0, 1], [1]), "Expected the number"), (lambda: model.predict(0, [ITEMS]), "items are 0 to 47"),
                        (lambda: model.predict([-1], [0]), "users are 0 to 119"),
                        (lambda: model.predict_rank(sparse.csr_matrix((USERS, 50))), "120 x 50"),
                        (lambda: model.predict_rank(TEST, sparse.csr_matrix((3, 3))), "of one shape"),
                        (lambda: precision_at_k(model, TEST, k=0), "k = 0"), (lambda: model.set_params(loss="wrap"), "wanted logistic")]:
        with pytest.raises(ValueError, match=said):
            wrong()
    assert model.loss != "wrap" and model.predict(0, []).shape == (0,)
    with pytest.raises(TypeError, match="item ids are float64"):
        model.predict(0, [1.5])


def test_features_of_zero_are_none(hybrid):
    model, features = hybrid
    stored = features.tocsr(copy=True)
    stored.data[stored.indptr[3]:stored.indptr[4]] = 0
    without = stored.copy()
    without.eliminate_zeros()
    for one in (stored, without):
        assert numpy.array_equal(model.get_item_representations(one)[1], model.get_item_representations(without)[1])
    with pytest.raises(ValueError, match="finite"):
        model.get_item_representations(stored * numpy.nan)
    assert model.get_item_representations(features[:0])[1].shape == (0, 8)


def test_books_are_found_as_by_lightfm_itself():
    """The losses that both have, on the readers of goodbooks, with equal arguments."""
    theirs = pytest.importorskip("lightfm").LightFM
    paths = [TOP.parent / "shared" / "data" / "items" / ("goodbooks.%s.txt" % name) for name in ("train", "test")]
    if not all(path.exists() for path in paths):
        pytest.skip("no goodbooks in ../shared/data")
    lists = [[line.split() for line in open(path)] for path in paths]
    dataset = Dataset()
    dataset.fit((line[0] for line in lists[0]), (item for part in lists for line in part for item in line[1:]))
    train, test = (dataset.build_interactions((line[0], item) for line in part for item in line[1:])[0] for part in lists)
    for loss in "warp", "bpr", "logistic":
        found = [precision_at_k(kind(no_components=30, loss=loss, random_state=1).fit(train, epochs=30, num_threads=2), test, train).mean()
                 for kind in (LightFM, theirs)]
        print(loss, found)
        assert found[0] >= found[1]


def test_errors_name_the_arguments():
    interactions = sparse.random(40, 30, 0.2, format="csr", random_state=1)
    with pytest.raises(ValueError, match="^rho = '2' is not a number"):
        LightFM(no_components=4, learning_schedule="adadelta", rho=2).fit(interactions)
    with pytest.raises(sptx.Error, match="lower learning_rate or train.batch"):
        LightFM(no_components=4, learning_rate=1e6).fit(interactions)
