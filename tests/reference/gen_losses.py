"""Known answers for the losses of kernels/losses.h and for pooled targets, by PyTorch's autograd and optimizers in float64.

A step: a batch of B blocks, each of T target rows (pooled into one vector, or each by itself) and C = P + N context rows, the
first P of them positive. Scores are dot products or cosines of rows as they were before the step; the loss is summed over
blocks; the gradient of a row is the sum over every place that it has in the batch; each distinct row gets one update, by its
own count of updates. Ids are drawn by Zipf's law, so that rows stand in a batch several times.

A file: '# optimizer NAME {JSON} bias_correction row reduction sum loss {JSON}', then blocks 'name d0 [d1]' of numbers, %.17g.

Usage: gen_losses.py OUTDIR [SEED]        (tests/reference/losses was made with seed 7)
"""
import json
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
V, D, B, P, N, STEPS = 40, 9, 6, 2, 5, 25
ADAM = (torch.optim.Adam, dict(lr=0.01))
ADAGRAD = (torch.optim.Adagrad, dict(lr=0.1))
SGD = (torch.optim.SGD, dict(lr=0.05))


class RowwiseAdagrad(torch.optim.Optimizer):
    """FBGEMM's exact_rowwise_adagrad without weight decay, for a parameter of one row."""

    def __init__(self, rows, lr=0.01, eps=1e-8):
        super().__init__(rows, dict(lr=lr, eps=eps))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for row in group["params"]:
                sum = self.state[row].setdefault("sum", torch.zeros(1, 1))
                sum += row.grad.square().mean()
                row -= group["lr"] * row.grad / (sum.sqrt() + group["eps"])


class Ftrl(torch.optim.Optimizer):
    """FTRL-Proximal, algorithm 1 of McMahan et al. 2013, where a first weight is that of the z which gives it."""

    def __init__(self, rows, lr=0.1, l1=0.0, l2=0.0, beta=1.0):
        super().__init__(rows, dict(lr=lr, l1=l1, l2=l2, beta=beta))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            lr, l1, l2, beta = (group[name] for name in ("lr", "l1", "l2", "beta"))
            for row in group["params"]:
                state, g = self.state[row], row.grad
                z, n = (state.setdefault(name, torch.zeros_like(row)) for name in "zn")
                first = (z == 0) & (n == 0)
                z[first] = -(row * (beta / lr + l2) + l1 * row.sign())[first]
                z += g - ((n + g * g).sqrt() - n.sqrt()) / lr * row
                n += g * g
                row.copy_(torch.where(z.abs() <= l1, 0 * z, -(z - z.sign() * l1) / ((beta + n.sqrt()) / lr + l2)))


FTRL = (Ftrl, dict(lr=0.2, l1=0.05, l2=0.3, beta=0.5))
ROWWISE = (RowwiseAdagrad, dict(lr=0.1))


class RowwiseAdam(torch.optim.Optimizer):
    """FBGEMM's partial_rowwise_adam without weight decay, for a parameter of one row."""

    def __init__(self, rows, lr=0.001, betas=(0.9, 0.999), eps=1e-8):
        super().__init__(rows, dict(lr=lr, betas=betas, eps=eps))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            (beta1, beta2), eps = group["betas"], group["eps"]
            for row in group["params"]:
                state = self.state[row]
                step = state["step"] = state.get("step", torch.tensor(0.0)) + 1
                mean = state.setdefault("exp_avg", torch.zeros_like(row))
                square = state.setdefault("exp_avg_sq", torch.zeros(1, 1))
                mean.mul_(beta1).add_((1 - beta1) * row.grad)
                square.mul_(beta2).add_((1 - beta2) * row.grad.square().mean())
                row -= group["lr"] * mean / (1 - beta1**step) / ((square / (1 - beta2**step)).sqrt() + eps)


ROWWISE_ADAM = (RowwiseAdam, dict(lr=0.02, betas=(0.8, 0.99)))

CASES = {
    "softmax_dot": (SGD, dict(loss="softmax", temperature=0.5)),
    "softmax_cosine": (ADAM, dict(loss="softmax", score="cosine", temperature=0.15)),
    "softmax_cosine_windows": (ADAM, dict(loss="softmax", score="cosine", temperature=0.3, negative_weight=3, targets=3)),
    "softmax_power_dot": (SGD, dict(loss="softmax", temperature=0.5, negative_power=1.15)),
    "softmax_power_cosine": (ADAM, dict(loss="softmax", score="cosine", temperature=0.15, negative_power=1.3, targets=2)),
    "bpr_dot": (ADAGRAD, dict(loss="bpr")),
    "bpr_cosine": (ADAM, dict(loss="bpr", score="cosine", temperature=0.2)),
    "contrastive_dot": (SGD, dict(loss="contrastive", margin=0.1, negative_weight=2)),
    "contrastive_cosine": (ADAM, dict(loss="contrastive", score="cosine", margin=0.3, negative_weight=20)),
    "logistic_cosine": (ADAGRAD, dict(loss="logistic", score="cosine", temperature=0.2, targets=2)),
    "weighted_logistic": (SGD, dict(loss="logistic", weighted=True)),
    "weighted_softmax_cosine": (ADAM, dict(loss="softmax", score="cosine", temperature=0.15, negative_weight=3, weighted=True)),
    "weighted_softmax_power": (ADAM, dict(loss="softmax", score="cosine", temperature=0.15, negative_power=1.3, weighted=True)),
    "weighted_bpr": (ADAGRAD, dict(loss="bpr", weighted=True)),
    "weighted_contrastive": (SGD, dict(loss="contrastive", margin=0.1, negative_weight=2, weighted=True)),
    "weighted_pooled": (SGD, dict(loss="logistic", targets=4, pool=True, own=0.4, weighted=True)),
    "pooled_logistic": (SGD, dict(loss="logistic", targets=4, pool=True)),
    "pooled_whole": (SGD, dict(loss="logistic", targets=4, pool=True, whole=True)),
    "pooled_sum": (SGD, dict(loss="logistic", targets=4, pool=True, sum=True)),
    "pooled_own_cosine": (ADAM, dict(loss="softmax", score="cosine", temperature=0.15, targets=4, pool=True, own=0.4)),
    "rowwise_logistic": (ROWWISE, dict(loss="logistic")),
    "rowwise_windows": (ROWWISE, dict(loss="logistic", targets=3)),
    "rowwise_softmax_cosine": (ROWWISE, dict(loss="softmax", score="cosine", temperature=0.15)),
    "ftrl_logistic": (FTRL, dict(loss="logistic")),
    "ftrl_softmax_cosine": ((Ftrl, dict(lr=0.1)), dict(loss="softmax", score="cosine", temperature=0.15)),
    "rowwise_adam_logistic": (ROWWISE_ADAM, dict(loss="logistic")),
    "rowwise_adam_windows": (ROWWISE_ADAM, dict(loss="logistic", targets=3)),
    "glove": (ADAGRAD, dict(loss="glove", x_max=2, x_power=0.75, weighted=True)),
    "pooled_contrastive": (ADAGRAD, dict(loss="contrastive", score="cosine", margin=0.2, negative_weight=9, targets=3, pool=True)),
}


def weights_of(targets, o):
    own = o.get("own", 0)
    if not own or targets == 1:
        return torch.full((targets,), 1 / targets)
    return torch.tensor([own] + [(1 - own) / (targets - 1)] * (targets - 1))


def pooled(rows, o):
    """Pools [B, T, D] into [B, 1, D]. word2vec.c gives each row of a mean the whole gradient, as if it had
    been added with weight 1; gensim's cbow_mean=0 gives each row of a sum its share of the gradient, as if it were a mean."""
    mean = (rows * weights_of(rows.shape[1], o)[None, :, None]).sum(1, keepdim=True)
    added = rows.sum(1, keepdim=True)
    if o.get("sum"):
        return added.detach() + mean - mean.detach()
    if not o.get("whole"):
        return mean
    return mean.detach() + added - added.detach()


def loss_of(score, o, w):
    """Computes the loss of scores [B, vectors, P + N], whose positives weigh w [B, 1, P]."""
    z = score / o.get("temperature", 1)
    weight = o.get("negative_weight", 1)
    positive, negative = z[..., :P], z[..., P:]
    if o["loss"] == "glove":  # the weights are counts
        share = torch.clamp((w / o["x_max"]) ** o["x_power"], max=1)
        return (share * (score[..., :P] - torch.log(w)) ** 2 / 2).sum()
    if o["loss"] == "logistic":
        return (w * F.softplus(-positive)).sum() + F.softplus(negative).sum()
    if o.get("negative_power"):
        return (w * (o["negative_power"] * torch.log(torch.exp(negative).mean(-1, keepdim=True)) - positive)).sum()
    if o["loss"] == "softmax":
        against = torch.log(weight * torch.exp(negative).sum(-1, keepdim=True))
        return (w * (torch.logaddexp(positive, against) - positive)).sum()
    if o["loss"] == "bpr":
        return (w[..., None] * F.softplus(negative[..., None, :] - positive[..., :, None])).sum()
    over = torch.relu(score[..., P:] - o["margin"]).mean(-1, keepdim=True)
    return (w * (1 - score[..., :P] + weight * over)).sum()


def scores_of(u, c, o):
    if o.get("score") == "cosine":
        u, c = u / u.norm(dim=-1, keepdim=True), c / c.norm(dim=-1, keepdim=True)
    return u @ c.transpose(1, 2)


class Table:
    """Rows with PyTorch's optimizer state, where each row is stepped by its own count."""

    def __init__(self, rule, values):
        self.rule, self.w, self.updates, self.state = rule, values, np.zeros(V, int), {}
        cls, options = rule
        probe = torch.zeros(1, D, requires_grad=True)
        probe.grad = torch.zeros(1, D)
        optimizer = cls([probe], **options)
        optimizer.step()
        for key, value in optimizer.state[probe].items():
            if torch.is_tensor(value) and value.dim() == 2:
                self.state[key] = torch.zeros(V, value.shape[1])

    def update(self, rows, gradient):
        cls, options = self.rule
        for i, row in enumerate(rows):
            p = self.w[row : row + 1].clone().requires_grad_(True)
            optimizer = cls([p], **options)
            p.grad = gradient[i : i + 1]
            state = optimizer.state[p]
            if self.state:
                for key, value in self.state.items():
                    state[key] = value[row : row + 1].clone()
                state["step"] = torch.tensor(float(self.updates[row]))
            optimizer.step()
            self.w[row] = p.detach()[0]
            for key in self.state:
                self.state[key][row] = optimizer.state[p][key].detach()[0]
            self.updates[row] += 1


def write_block(f, name, values):
    values = np.asarray(values)
    form = "%d" if values.dtype.kind in "iu" else "%.17g"
    f.write(name + "".join(f" {d}" for d in values.shape) + "\n")
    for row in np.atleast_2d(values):
        f.write(" ".join(form % x for x in row) + "\n")


def run(path, rule, o, seed):
    rng = np.random.default_rng(seed)
    each = o.get("targets", 1)
    tables = [Table(rule, torch.tensor(rng.uniform(-0.5, 0.5, (V, D)))), Table(rule, torch.tensor(rng.normal(0, 0.3, (V, D))))]
    target_ids = rng.zipf(1.3, (STEPS, B, each)) % V
    context_ids = rng.zipf(1.3, (STEPS, B, P + N)) % V
    weights = rng.uniform(0, 3, (STEPS, B, P)).astype(np.float32).astype(float) if o.get("weighted") else np.ones((STEPS, B, P))
    losses = []
    with open(path, "w") as f:
        f.write(f"# optimizer {rule[0].__name__} {json.dumps(rule[1])} bias_correction row reduction sum loss {json.dumps(o)}\n")
        write_block(f, "shape", np.array([V, D, B, P, N, STEPS]))
        write_block(f, "target_init", tables[0].w.numpy())
        write_block(f, "context_init", tables[1].w.numpy())
        write_block(f, "target_ids", target_ids.reshape(STEPS, -1))
        write_block(f, "context_ids", context_ids.reshape(STEPS, -1))
        if o.get("weighted"):
            write_block(f, "weights", weights.reshape(STEPS, -1))
        for step in range(STEPS):
            rows, places = zip(*(np.unique(ids[step], return_inverse=True) for ids in (target_ids, context_ids)))
            leaf = [t.w[r].clone().requires_grad_(True) for t, r in zip(tables, rows)]
            u = leaf[0][torch.tensor(places[0].reshape(B, each))]
            c = leaf[1][torch.tensor(places[1].reshape(B, P + N))]
            loss = loss_of(scores_of(pooled(u, o) if o.get("pool") else u, c, o), o, torch.tensor(weights[step])[:, None, :])
            loss.backward()
            losses.append(loss.item())
            for table, r, l in zip(tables, rows, leaf):
                table.update(r, l.grad)
        write_block(f, "losses", np.array(losses))
        for table, name in zip(tables, ("target", "context")):
            write_block(f, name + "_final", table.w.numpy())
            write_block(f, name + "_updates", table.updates)
            for key, value in table.state.items():
                write_block(f, f"{name}_state_{key}", value.numpy())


def main():
    out, seed = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 7
    os.makedirs(out, exist_ok=True)
    for name, (rule, o) in CASES.items():
        run(os.path.join(out, name + ".txt"), rule, o, seed)
    print("torch", torch.__version__, len(CASES), "files")


main()
