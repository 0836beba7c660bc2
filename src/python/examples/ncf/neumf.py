"""Neural Collaborative Filtering with its tables in host memory: NeuMF (He et al. 2017, https://arxiv.org/abs/1708.05031), a product of
embeddings beside a perceptron over embeddings, joined by a last layer. The rows of users and items are sptx.Table's: a step fetches
those of its batch, and they may be more than a GPU holds.

  python neumf.py --ratings ratings.dat --out ml-1m     makes the authors' three files (ml-1m.train.rating, ..) of MovieLens' ratings
  python neumf.py --data ml-1m                          trains, and judges by the authors' protocol and among all items;
                                                        then sptx.fit on the same pairs
  python neumf.py --users 10000000 --factors 32         generated people, whose rows and Adam's state take 15 GB
"""

import argparse
import re
import tempfile
import time
from pathlib import Path
from typing import Callable, List, NamedTuple, Optional

import numpy
import torch

import sptx
import sptx.torch

NEGATIVES = 99  # items that a person's held-out item is ranked among by the authors' protocol


class Data(NamedTuple):
    """The data: which user has which items. Users and items are numbers from 0.

    users, items   how many there are
    pairs          int64 [n x 2]: user, item
    held_out       int64 [asked x 2]: a user and an item that `pairs` does not have
    negatives      int64 [asked x 99]: items that the user does not have
    """

    users: int
    items: int
    pairs: numpy.ndarray
    held_out: numpy.ndarray
    negatives: numpy.ndarray


# ---- the authors' files ----

def leave_one_out(ratings: str, stem: str, seed: int = 1) -> None:
    """Writes STEM.train.rating, STEM.test.rating and STEM.test.negative: each user's last item is held out. ratings: a file of lines of
    user, item, rating, time, parted by '::', commas or blanks. Users and items are numbered from 0 by first occurrence."""
    rows = [re.split(r"::|[,\s]+", line.strip())[:4] for line in open(ratings, encoding="utf-8") if line[0].isdigit()]
    users, items = ({name: number for number, name in enumerate(dict.fromkeys(row[i] for row in rows))} for i in (0, 1))
    of_user: List[List[tuple]] = [[] for _ in users]
    for user, item, rating, when in rows:
        of_user[users[user]].append((int(when), items[item], rating))
    draw = numpy.random.default_rng(seed)
    with open(stem + ".train.rating", "w") as train, open(stem + ".test.rating", "w") as test, open(stem + ".test.negative", "w") as others:
        for user, seen in enumerate(of_user):
            *rest, last = sorted(seen)
            train.writelines("%d\t%d\t%s\t%d\n" % (user, item, rating, when) for when, item, rating in rest)
            test.write("%d\t%d\t%s\t%d\n" % (user, last[1], last[2], last[0]))
            unseen = numpy.setdiff1d(numpy.arange(len(items)), [item for _, item, _ in seen])
            drawn = draw.choice(unseen, NEGATIVES, replace=len(unseen) < NEGATIVES)
            others.write("(%d,%d)\t%s\n" % (user, last[1], "\t".join(map(str, drawn))))


def read(stem: str) -> Data:
    """Reads the three files of the authors' repository."""
    pairs, held_out = (numpy.loadtxt(stem + end, numpy.int64, usecols=(0, 1), ndmin=2) for end in (".train.rating", ".test.rating"))
    negatives = numpy.array([line.split("\t")[1:] for line in open(stem + ".test.negative").read().splitlines()], numpy.int64)
    both = numpy.concatenate([pairs, held_out])
    return Data(int(both[:, 0].max()) + 1, int(max(both[:, 1].max(), negatives.max())) + 1, pairs, held_out, negatives)


def generated(users: int, items: int = 20_000, each: int = 8, tastes: int = 50, asked: int = 2_000, seed: int = 1) -> Data:
    """Makes people of some tastes. Each taste has its own order of the items, of which the first are the most liked."""
    draw = numpy.random.default_rng(seed)
    liked = numpy.array([draw.permutation(items) for _ in range(tastes)])
    user = numpy.repeat(numpy.arange(users), each)
    place = numpy.minimum((draw.pareto(0.8, len(user)) * 20).astype(numpy.int64), items - 1)
    pairs = numpy.stack([user, liked[user % tastes, place]], 1)
    some = draw.choice(users, min(asked, users), replace=False)
    held_out = numpy.stack([some, liked[some % tastes, draw.integers(0, 40, len(some))]], 1)
    mine = {int(one): set() for one in some}
    for one, item in pairs[numpy.isin(pairs[:, 0], some)].tolist():
        mine[one].add(item)
    new = numpy.array([item not in mine[one] for one, item in held_out.tolist()])
    return Data(users, items, pairs, held_out[new], draw.integers(0, items, (int(new.sum()), NEGATIVES)))


# ---- the model ----

class NeuMF(torch.nn.Module):
    """The probability that a user likes an item. A row of either table has the columns of both parts: `factors` for the product, four
    times as many for the perceptron."""

    def __init__(self, users: int, items: int, factors: int = 8, lr: float = 1e-3, device: str = "auto") -> None:
        super().__init__()
        self.factors = factors
        options = {"optimizer": "adam", "lr": lr, "init": "normal 0 0.01", "device": sptx.Context(device)}
        self.users = sptx.torch.Embedding(sptx.Table(users, 5 * factors, seed=1, **options))
        self.items = sptx.torch.Embedding(sptx.Table(items, 5 * factors, seed=2, **options))
        layers: List[torch.nn.Module] = []
        for width in (8 * factors, 4 * factors, 2 * factors):
            layers += [torch.nn.Linear(width, width // 2), torch.nn.ReLU()]
        self.perceptron, self.last = torch.nn.Sequential(*layers), torch.nn.Linear(2 * factors, 1)

    def forward(self, users: torch.Tensor, items: torch.Tensor) -> torch.Tensor:
        """Returns the logits, float32 [n], of pairs of users and items, int64 [n]."""
        user, item = self.users(users), self.items(items)
        product = user[:, :self.factors] * item[:, :self.factors]
        deep = self.perceptron(torch.cat([user[:, self.factors:], item[:, self.factors:]], 1))
        return self.last(torch.cat([product, deep], 1))[:, 0]


def train(model: NeuMF, data: Data, epochs: int, batch: int = 256, negatives: int = 4, lr: float = 1e-3, seed: int = 1,
          after: Callable[[int, float], None] = lambda epoch, loss: None) -> None:
    """Trains by the logistic loss: each pair is set against `negatives` items drawn anew in each epoch. after(epoch, loss) is called after
    each epoch."""
    rest = [one for name, one in model.named_parameters() if not name.endswith("anchor")]
    device, adam = rest[0].device, torch.optim.Adam(rest, lr)
    draw = numpy.random.default_rng(seed)
    for epoch in range(epochs):
        order, total, size = draw.permutation(len(data.pairs)), 0.0, max(1, batch // (1 + negatives))
        for first in range(0, len(order), size):
            liked = data.pairs[order[first:first + size]]
            users = numpy.repeat(liked[:, 0], 1 + negatives)
            items = draw.integers(0, data.items, (len(liked), 1 + negatives))
            items[:, 0] = liked[:, 1]
            wanted = torch.zeros(items.shape, device=device)
            wanted[:, 0] = 1
            found = model(torch.as_tensor(users, device=device), torch.as_tensor(items.ravel(), device=device))
            loss = torch.nn.functional.binary_cross_entropy_with_logits(found, wanted.ravel())
            adam.zero_grad()
            loss.backward()  # the rows of both tables are updated here
            adam.step()
            total += loss.item() * len(liked)
        after(epoch, total / len(order))


# ---- judged ----

def judged(scores_of: Callable[[int], numpy.ndarray], data: Data, k: int = 10) -> dict:
    """Returns HR@k and NDCG@k of the held-out items, by the authors' protocol (ranked among 99 items that the user does not have) and among
    all items that the user does not have. scores_of(n): scores, float [items], of all items for the n-th held-out pair; items of the user
    may have -inf."""
    order = numpy.argsort(data.pairs[:, 0], kind="stable")
    ends = numpy.searchsorted(data.pairs[order, 0], [data.held_out[:, 0], data.held_out[:, 0] + 1])
    ranks = numpy.zeros((2, len(data.held_out)), numpy.int64)
    for n, (_, item) in enumerate(data.held_out):
        scores = scores_of(n)
        best = scores[item]
        ranks[0, n] = (scores[data.negatives[n]] >= best).sum()
        scores[data.pairs[order[ends[0, n]:ends[1, n]], 1]] = -numpy.inf
        ranks[1, n] = (scores >= best).sum() - 1
    gains = numpy.where(ranks < k, 1 / numpy.log2(ranks + 2.0), 0)
    return {"HR@%d" % k: (ranks[0] < k).mean(), "NDCG@%d" % k: gains[0].mean(), "HR@%d, all" % k: (ranks[1] < k).mean(),
            "NDCG@%d, all" % k: gains[1].mean()}


def judge_model(model: NeuMF, data: Data) -> dict:
    device = model.last.weight.device
    items = torch.arange(data.items, device=device)

    def scores(n: int) -> numpy.ndarray:
        with torch.no_grad():
            return model(torch.full_like(items, int(data.held_out[n, 0])), items).cpu().numpy()

    return judged(scores, data)


def judge_fit(run: sptx.Run, data: Data) -> dict:
    """Judges a run of sptx.fit, whose recommend() gives the items of a list in order."""
    asked = [str(user) for user in data.held_out[:, 0]]
    answers: List[List[tuple]] = []

    def scores(n: int) -> numpy.ndarray:
        if n == len(answers):
            answers.extend(run.recommend(lists=asked[n:n + 256], k=len(run), seen=True))
        out = numpy.full(data.items, -numpy.inf)
        for item, score in answers[n]:
            out[int(item)] = score
        answers[n] = []
        return out

    return judged(scores, data)


def said(found: dict) -> str:
    return "  ".join("%s %.3f" % one for one in found.items())


def main(words: Optional[List[str]] = None) -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--ratings", help="lines of user, item, rating, time")
    options.add_argument("--out", default="ratings", help="with --ratings: what the three files begin with")
    options.add_argument("--data", help="what the three files of the authors' layout begin with")
    options.add_argument("--users", type=int, default=20_000, help="without --data: generated people")
    options.add_argument("--each", type=int, default=8, help="pairs of each of them")
    options.add_argument("--factors", type=int, default=8)
    options.add_argument("--epochs", type=int, default=20)
    options.add_argument("--batch", type=int, default=256)
    options.add_argument("--device", default="auto")
    given = options.parse_args(words)
    if given.ratings:
        return leave_one_out(given.ratings, given.out)
    data = read(given.data) if given.data else generated(given.users, each=given.each)
    model = NeuMF(data.users, data.items, given.factors, device=given.device)
    model.to("cpu" if given.device == "cpu" or not torch.cuda.is_available() else "cuda")
    print("%d users, %d items, %d pairs; rows and their state take %.1f GB" %
          (data.users, data.items, len(data.pairs), (data.users + data.items) * 5 * given.factors * 12 / 1e9))
    began = time.time()
    train(model, data, given.epochs, given.batch, after=lambda epoch, loss: print("epoch %d: loss %.4f, %.0f s" % (epoch + 1, loss, time.time() - began)))
    print("NeuMF     %s" % said(judge_model(model, data)))
    began = time.time()
    with tempfile.TemporaryDirectory() as place:
        run = sptx.fit((data.pairs[:, 0], data.pairs[:, 1]), Path(place, "run"), format="pairs", device=given.device, progress=False)
        print("sptx.fit  %s  %.1f s" % (said(judge_fit(run, data)), time.time() - began))


if __name__ == "__main__":
    main()
