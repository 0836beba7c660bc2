"""A click model on a stream of days: users, ads and sites come and go, and every key of them has a row from its second sight on.

  python clicks.py                                  7 days of 40,000 generated impressions, in a folder of its own
  python clicks.py --days 30 --events 1000000       more of them
  python clicks.py --out runs/clicks --device cpu

The model is wide and deep (Cheng et al. 2016). Wide: one weight a key, by FTRL, whose L1 penalty keeps rare keys at 0. Deep: a row of
`--columns` numbers a key, by Adam, and a small network of PyTorch over the rows of an impression. Both tables let keys leave that were not
seen for long.

Every impression is predicted before it is trained on (progressive validation), so each day's loss is of the future. At the end of a day
what has changed is saved, and a serving copy takes it over; its predictions are then the trainer's. Prints a line a day.
"""

import argparse
import os
import tempfile
from typing import Any, Dict, Iterator, List, Optional, Tuple

import numpy
import torch
from torch.nn import functional

import sptx
import sptx.torch

FIELDS = ("user", "ad", "site", "user x kind of ad")


def keys_of(field: int, values: numpy.ndarray) -> torch.Tensor:
    """Returns the 64-bit keys of a field's values: a hash of field and value (murmur3's finalizer). Strings, such as "ad:99", could be used as
    keys directly."""
    with numpy.errstate(over="ignore"):
        key = values.astype(numpy.uint64) + (numpy.uint64(field + 1) << numpy.uint64(48))
        for factor in 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53:
            key = (key ^ (key >> numpy.uint64(33))) * numpy.uint64(factor)
    return torch.from_numpy((key ^ (key >> numpy.uint64(33))).view(numpy.int64))


class Stream:
    """Generated days. Whoever clicks has a taste, and an ad has a kind; each day brings new users and new ads, and old ads end."""

    def __init__(self, events: int, seed: int) -> None:
        self.events, self.random = events, numpy.random.default_rng(seed)
        self.users = self.random.standard_normal((max(events // 10, 50), 4))
        self.ads = self.random.standard_normal((200, 4))
        self.sites = self.random.standard_normal(30) / 2

    def day(self, number: int) -> Tuple[torch.Tensor, torch.Tensor]:
        """Returns the keys, int64 [events x FIELDS], and the clicks, float32 [events]."""
        random = self.random
        if number:
            self.users = numpy.concatenate([self.users, random.standard_normal((len(self.users) // 10, 4))])
            self.ads = numpy.concatenate([self.ads, random.standard_normal((40, 4))])
        user = (len(self.users) * random.random(self.events) ** 2).astype(int)
        ad = len(self.ads) - 1 - (200 * random.random(self.events) ** 1.5).astype(int)  # the newest 200, newer ones more often
        site = random.integers(0, len(self.sites), self.events)
        kind = abs(self.ads[ad]).argmax(1) * 2 + (self.ads[ad].max(1) > 1)
        score = (self.users[user] * self.ads[ad]).sum(1) + self.ads[ad][:, 0] / 2 + self.users[user][:, 1] / 2 + self.sites[site] - 2
        clicks = random.random(self.events) < 1 / (1 + numpy.exp(-score))
        keys = [keys_of(field, values) for field, values in enumerate((user, ad, site, user * 16 + kind))]
        return torch.stack(keys, dim=1), torch.from_numpy(clicks.astype(numpy.float32))


class Clicks(torch.nn.Module):
    """Predicts the logit of a click from an impression's keys [events x FIELDS]."""

    def __init__(self, wide: sptx.KeyedTable, deep: sptx.KeyedTable) -> None:
        super().__init__()
        self.wide, self.deep = sptx.torch.KeyedEmbeddingBag(wide, mode="sum"), sptx.torch.KeyedEmbedding(deep)
        self.layers = torch.nn.Sequential(torch.nn.Linear(len(FIELDS) * deep.dim, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))

    def forward(self, keys: torch.Tensor) -> torch.Tensor:
        return self.wide(keys)[:, 0] + self.layers(self.deep(keys).flatten(1))[:, 0]


def batches(keys: torch.Tensor, clicks: torch.Tensor, size: int) -> Iterator[Tuple[torch.Tensor, torch.Tensor]]:
    return zip(keys.split(size), clicks.split(size))


def main(arguments: Optional[List[str]] = None) -> List[Dict[str, Any]]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=7)
    parser.add_argument("--events", type=int, default=40_000, help="impressions of a day")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--capacity", type=int, default=50_000, help="keys that have rows at a time")
    parser.add_argument("--columns", type=int, default=8)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", help="folder for the tables and what changes each day; by default a temporary one")
    given = parser.parse_args(arguments)
    if given.out is not None:
        os.makedirs(given.out, exist_ok=True)
        return train(given, given.out)
    with tempfile.TemporaryDirectory() as folder:
        return train(given, folder)


def train(given: argparse.Namespace, folder: str) -> List[Dict[str, Any]]:
    torch.manual_seed(given.seed)
    tables = {
        "wide": sptx.KeyedTable(given.capacity, 1, "ftrl", lr=0.1, l1=0.1, init="zeros", evict="lru", device=given.device),
        "deep": sptx.KeyedTable(given.capacity, given.columns, "adam", lr=0.005, init="normal 0 0.05", evict="lru", admit=2,
                                device=given.device)}
    model = Clicks(**tables)
    optimizer = torch.optim.Adam(model.layers.parameters(), lr=0.003)
    for name, table in tables.items():
        table.save(os.path.join(folder, name))
    marks = {name: table.mark() for name, table in tables.items()}
    serving = Clicks(**{name: sptx.KeyedTable.load(os.path.join(folder, name), device=given.device) for name in tables}).eval()
    stream, found, clicked, shown = Stream(given.events, given.seed), [], 1.0, 2.0
    print("%4s %8s %10s %12s %10s %10s" % ("day", "logloss", "constant", "keys", "left", "bytes"))
    for day in range(given.days):
        keys, clicks = stream.day(day)
        loss = constant = 0.0
        for some, truth in batches(keys, clicks, given.batch):
            logits = model(some)
            of_batch = functional.binary_cross_entropy_with_logits(logits, truth.to(logits.device), reduction="sum")
            loss += float(of_batch)  # of the model as it was before this batch
            rate = clicked / shown
            constant -= float((truth * numpy.log(rate) + (1 - truth) * numpy.log(1 - rate)).sum())
            optimizer.zero_grad()
            of_batch.backward()  # updates the rows of both tables, too
            optimizer.step()
            clicked, shown = clicked + float(truth.sum()), shown + len(truth)
        size = 0
        for name, table in tables.items():
            path = os.path.join(folder, "%s.%d" % (name, day))
            table.save_changes(path, since=marks[name])
            marks[name] = table.mark()
            size += os.path.getsize(path)
            getattr(serving, name).table.apply_changes(path)
        serving.layers.load_state_dict(model.layers.state_dict())
        same = torch.equal(serving(keys[:1000]), model.eval()(keys[:1000]))
        model.train()
        found.append({"logloss": loss / len(clicks), "constant": constant / len(clicks), "keys": len(tables["deep"]),
                      "left": sum(table.evictions for table in tables.values()), "bytes": size, "same": same})
        print("%4d %8.4f %10.4f %12d %10d %10d" % (day + 1, *(found[-1][name] for name in ("logloss", "constant", "keys", "left", "bytes"))))
    return found


if __name__ == "__main__":
    main()
