"""A small language model with and without a memory of hashed n-grams in host memory: what the memory is worth, and what it costs a step.

  python train.py TEXT                                        both models, each for 1,000 steps; prints their held-out losses
  python train.py TEXT --rows 200000000 --steps 20000         a memory of 25 GB
  python train.py TEXT --device cpu --steps 40 --layers 2     on a CPU
  torchrun --nproc_per_node=2 train.py TEXT                   by two processes of one machine, each with its GPU and half of each batch

With torchrun the processes have one memory (sptx.Table(shared=..)), which learns from all of them as one process would.

TEXT is a file of UTF-8. It is split by a byte-level BPE that is trained on its first 4 MB (the package `tokenizers`). The last twentieth
of the tokens is held out.
"""

import argparse
import math
import os
import time
from typing import Dict, Iterator, List, Optional, Tuple

import numpy
import tokenizers
import torch
from torch.nn import functional

import sptx
import sptx.torch

RANK, RANKS = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))  # torchrun's


def tokens_of(path: str, words: int) -> Tuple[torch.Tensor, int]:
    """Returns the tokens of a text, int64, and the number of different tokens."""
    with open(path, encoding="utf-8", errors="replace") as file:
        text = file.read()
    bpe = tokenizers.ByteLevelBPETokenizer()
    bpe.train_from_iterator([text[:4 << 20]], vocab_size=words, min_frequency=2, show_progress=False)
    parts = [text[at:at + (1 << 16)] for at in range(0, len(text), 1 << 16)]
    ids = numpy.concatenate([numpy.asarray(part.ids, numpy.int64) for part in bpe.encode_batch(parts)])
    return torch.from_numpy(ids), bpe.get_vocab_size()


class Block(torch.nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = torch.nn.LayerNorm(dim), torch.nn.LayerNorm(dim)
        self.three, self.joined = torch.nn.Linear(dim, 3 * dim, bias=False), torch.nn.Linear(dim, dim, bias=False)
        self.wide, self.narrow = torch.nn.Linear(dim, 4 * dim), torch.nn.Linear(4 * dim, dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, time, dim = x.shape
        q, k, v = self.three(self.before(x)).view(batch, time, 3, self.heads, dim // self.heads).permute(2, 0, 3, 1, 4)
        if hasattr(functional, "scaled_dot_product_attention"):
            seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:  # before PyTorch 2
            later = torch.full((time, time), -math.inf, device=x.device, dtype=x.dtype).triu(1)
            seen = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + later).softmax(-1) @ v
        x = x + self.joined(seen.transpose(1, 2).reshape(batch, time, dim))
        return x + self.narrow(functional.gelu(self.wide(self.between(x))))


class Model(torch.nn.Module):
    """A GPT. With a memory, what the last two and three tokens recall is added to the states behind the first block, through a gate that the
    states open: an n-gram that was never seen recalls zeros."""

    def __init__(self, words: int, dim: int, layers: int, time: int, memory: Optional[sptx.torch.NgramEmbedding] = None) -> None:
        super().__init__()
        self.words, self.places = torch.nn.Embedding(words, dim), torch.nn.Embedding(time, dim)
        self.blocks = torch.nn.ModuleList(Block(dim, max(1, dim // 64)) for _ in range(layers))
        self.last, self.out = torch.nn.LayerNorm(dim), torch.nn.Linear(dim, words, bias=False)
        self.memory = memory
        if memory is not None:
            width = len(memory.orders) * memory.heads * memory.table.dim
            self.recalled, self.gate = torch.nn.Linear(width, dim, bias=False), torch.nn.Linear(dim, dim)

    def forward(self, tokens: torch.Tensor, next_tokens: torch.Tensor) -> torch.Tensor:
        """tokens, next_tokens: int64 [batch, time]. Returns the mean loss of a token."""
        x = self.words(tokens) + self.places.weight[:tokens.shape[1]]
        for number, block in enumerate(self.blocks):
            x = block(x)
            if self.memory is not None and not number:
                x = x + torch.sigmoid(self.gate(x)) * self.recalled(self.memory(tokens).to(x.dtype))
        return functional.cross_entropy(self.out(self.last(x)).flatten(0, 1).float(), next_tokens.flatten())


def batches(tokens: torch.Tensor, time: int, batch: int, seed: int) -> Iterator[Tuple[torch.Tensor, torch.Tensor]]:
    """Yields this process's part of one batch after the other."""
    starts = numpy.random.default_rng(seed)
    while True:
        at = torch.from_numpy(starts.integers(0, len(tokens) - time - 1, batch))
        rows = tokens[at[RANK::RANKS, None] + torch.arange(time + 1)]
        yield rows[:, :-1], rows[:, 1:]


def held_out_loss(model: Model, tokens: torch.Tensor, time: int, batch: int, device: str) -> float:
    count = min(len(tokens) - 1, 400 * time) // time
    x, y = tokens[:count * time].view(count, time), tokens[1:count * time + 1].view(count, time)
    with torch.no_grad():
        losses = [model(x[i:i + batch].to(device), y[i:i + batch].to(device)).item() * len(x[i:i + batch]) for i in range(0, count, batch)]
    return sum(losses) / count


def train(model: Model, tokens: torch.Tensor, steps: int, time_: int, batch: int, lr: float, device: str) -> Dict[str, float]:
    """Trains, and returns the loss of the last steps and the milliseconds of a step. The memory is told of the next batch's tokens, so that
    their rows come while this batch is computed."""
    model.to(device)
    adam = torch.optim.AdamW([one for name, one in model.named_parameters() if not name.endswith("anchor")], lr, betas=(0.9, 0.95))
    source, last, began = batches(tokens, time_, batch, 1), [], time.perf_counter()
    x, y = (part.to(device) for part in next(source))
    for step in range(steps):
        coming = [part.to(device) for part in next(source)]
        if model.memory is not None:
            model.memory.prefetch(coming[0])
        for group in adam.param_groups:
            group["lr"] = lr * min(1, 10 * (step + 1) / steps) * (0.5 + 0.5 * math.cos(math.pi * step / steps))
        with torch.autocast(device.split(":")[0], dtype=torch.bfloat16, enabled=device != "cpu"):
            loss = model(x, y) / RANKS
        adam.zero_grad()
        loss.backward()  # the memory's rows are updated here
        for one in model.parameters() if RANKS > 1 else ():
            if one.grad is not None and one.numel():
                torch.distributed.all_reduce(one.grad)
        adam.step()
        last = [*last[-49:], loss.detach() * RANKS]
        x, y = coming
    found = float(torch.stack(last).mean())
    return {"loss": found, "ms": (time.perf_counter() - began) / steps * 1e3}


def main(words: Optional[List[str]] = None) -> Dict[str, Dict[str, float]]:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("text")
    for name, value in (("rows", 4_000_000), ("columns", 64), ("steps", 1000), ("words", 8192), ("dim", 256), ("layers", 4), ("time", 256),
                        ("batch", 32)):
        options.add_argument("--" + name, type=int, default=value)
    options.add_argument("--lr", type=float, default=1e-3)
    options.add_argument("--memory_lr", type=float, default=0.02)
    options.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    given = options.parse_args(words)
    if RANKS > 1:
        if given.device == "cuda":
            given.device = "cuda:%s" % os.environ["LOCAL_RANK"]
            torch.cuda.set_device(given.device)
        torch.distributed.init_process_group("nccl" if given.device.startswith("cuda") else "gloo")
    tokens, kinds = tokens_of(given.text, given.words)
    cut = len(tokens) * 19 // 20
    found: Dict[str, Dict[str, float]] = {}
    for name in "without", "with":
        torch.manual_seed(1)
        memory = None
        if name == "with":
            table = sptx.Table(given.rows, given.columns, "rowwise_adagrad", lr=given.memory_lr, dtype="bfloat16", init="zeros",
                               device=sptx.Context(given.device), shared="ngram-%s" % os.environ["MASTER_PORT"] if RANKS > 1 else None)
            memory = sptx.torch.NgramEmbedding(table)
        model = Model(kinds, given.dim, given.layers, given.time, memory)
        found[name] = train(model, tokens[:cut], given.steps, given.time, given.batch, given.lr, given.device)
        found[name]["held_out"] = held_out_loss(model, tokens[cut:], given.time, given.batch, given.device)
        if RANK:
            continue
        print("%s a memory: loss %.4f, held out %.4f, %.1f ms a step%s" %
              (name, found[name]["loss"], found[name]["held_out"], found[name]["ms"],
               "" if memory is None else "; " + ", ".join("%s %.4f" % one for one in memory.usage().items())), flush=True)
    if RANKS > 1:
        torch.distributed.destroy_process_group()
    return found


if __name__ == "__main__":
    main()
