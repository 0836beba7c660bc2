"""Callbacks for PyTorch Lightning and Hugging Face's Trainer (sptx.lightning, sptx.transformers). Each test is skipped without the package."""
import os
import pickle
import shutil

import numpy
import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")
import sptx  # noqa: E402


def table(seed=1, **more):
    return sptx.Table(50, 4, "adagrad", lr=0.1, seed=seed, device="cpu", **more)


def data():
    generator = torch.Generator().manual_seed(1)
    return [(torch.randint(0, 50, (8,), generator=generator), torch.rand(8, generator=generator)) for _ in range(12)]


class Net(torch.nn.Module):
    def __init__(self, seed=1, **named):
        super().__init__()
        torch.manual_seed(1)
        self.emb = sptx.torch.Embedding(table(seed), **named)
        self.head = torch.nn.Linear(4, 1)

    def forward(self, ids=None, labels=None):
        loss = (self.head(self.emb(ids)).squeeze(-1) - labels).square().mean()
        return {"loss": loss}


def rows(model):
    return model.emb.table.fetch(numpy.arange(50))


def by_hand(epochs, every=1, **named):
    """Trains as both trainers do: gradients of `every` batches, each divided by it, and one optimizer step."""
    net = Net(**named)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(epochs):
        for number, (ids, labels) in enumerate(data(), 1):
            (net(ids, labels)["loss"] / every).backward()
            if number % every == 0:
                if named.get("accumulate"):
                    net.emb.step()
                optimizer.step()
                optimizer.zero_grad()
    return net


# ---- Lightning ----

@pytest.fixture
def lightning(monkeypatch):
    package = pytest.importorskip("lightning.pytorch")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    return package


def module_of(lightning, **named):
    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = Net(**named)

        def training_step(self, batch, _):
            return self.net(*batch)["loss"]

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.1)
    return Module()


def trainer_of(lightning, place, epochs, keep=1, **named):
    saver = lightning.callbacks.ModelCheckpoint(dirpath=place, save_top_k=keep, monitor="epoch" if keep > 1 else None, mode="max", save_last=True)
    return lightning.Trainer(max_epochs=epochs, default_root_dir=place, accelerator="cpu", devices=1, logger=False, enable_progress_bar=False,
                             enable_model_summary=False, callbacks=[sptx.lightning.Rows(), saver], **named)


def loader():
    return torch.utils.data.DataLoader(data(), batch_size=None)


@pytest.mark.parametrize("named, every, accumulate", [
    ({}, 1, False), ({"accumulate_grad_batches": 3}, 3, False), ({"accumulate_grad_batches": 3}, 3, True), ({"gradient_clip_val": 100.0}, 1, False)])
def test_lightning_trains_as_by_hand(lightning, tmp_path, named, every, accumulate):
    model = module_of(lightning, accumulate=accumulate)
    trainer_of(lightning, tmp_path, 2, **named).fit(model, loader())
    wanted = by_hand(2, every, accumulate=accumulate)
    assert numpy.allclose(rows(model.net), rows(wanted), atol=1e-6) and torch.allclose(model.net.head.weight, wanted.head.weight, atol=1e-6)
    assert model.net.emb.table.steps == (24 // every if accumulate else 24)


def test_lightning_in_bfloat16(lightning, tmp_path):
    model = module_of(lightning)
    trainer_of(lightning, tmp_path, 2, precision="bf16-mixed").fit(model, loader())
    assert numpy.isfinite(rows(model.net)).all() and model.net.emb.table.steps == 24


def test_lightning_resumes_with_the_rows(lightning, tmp_path):
    """A fit that is resumed in another folder ends with the bytes of one that was not; checkpoints and rows are removed together."""
    whole = module_of(lightning)
    trainer_of(lightning, tmp_path / "whole", 4).fit(whole, loader())
    trainer_of(lightning, tmp_path / "half", 2).fit(module_of(lightning), loader())
    (tmp_path / "half").rename(tmp_path / "moved")
    other = module_of(lightning, seed=9)
    trainer_of(lightning, tmp_path / "moved", 4).fit(other, loader(), ckpt_path=str(tmp_path / "moved" / "last.ckpt"))
    assert rows(other.net).tobytes() == rows(whole.net).tobytes() and other.net.emb.table.steps == whole.net.emb.table.steps == 48
    names = {name for name in os.listdir(tmp_path / "moved")}
    assert {name + ".rows" for name in names if name.endswith(".ckpt")} == {name for name in names if name.endswith(".rows")}


def test_a_checkpoint_of_lightning_without_its_rows_says_so(lightning, tmp_path):
    trainer_of(lightning, tmp_path, 1).fit(module_of(lightning), loader())
    shutil.rmtree(tmp_path / "last.ckpt.rows")
    with pytest.raises(RuntimeError, match="is gone; a state_dict holds no rows"):
        trainer_of(lightning, tmp_path, 2).fit(module_of(lightning, seed=9), loader(), ckpt_path=str(tmp_path / "last.ckpt"))


def test_a_model_is_not_sent_to_spawned_processes():
    with pytest.raises(TypeError, match="shared="):
        pickle.dumps(Net().emb)


# ---- Hugging Face's Trainer ----

@pytest.fixture
def transformers(monkeypatch):
    package = pytest.importorskip("transformers")
    pytest.importorskip("accelerate")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    return package


def fit(transformers, place, model, epochs, resume=None, **named):
    arguments = transformers.TrainingArguments(
        str(place), num_train_epochs=epochs, per_device_train_batch_size=1, learning_rate=0.1, optim="sgd", lr_scheduler_type="constant",
        max_grad_norm=0, report_to=[], disable_tqdm=True, save_strategy="epoch", use_cpu=True, remove_unused_columns=False, **named)

    class InOrder(transformers.Trainer):
        def get_train_dataloader(self):
            return torch.utils.data.DataLoader(self.train_dataset, collate_fn=self.data_collator)

    trainer = InOrder(model, arguments, train_dataset=data(), data_collator=lambda one: {"ids": one[0][0], "labels": one[0][1]},
                      callbacks=[sptx.transformers.Rows()])
    trainer.train(resume_from_checkpoint=resume)
    return model


@pytest.mark.parametrize("every, accumulate", [(1, False), (3, False), (3, True)])
def test_the_trainer_trains_as_by_hand(transformers, tmp_path, every, accumulate):
    model = fit(transformers, tmp_path, Net(accumulate=accumulate), 2, gradient_accumulation_steps=every)
    wanted = by_hand(2, every, accumulate=accumulate)
    assert numpy.allclose(rows(model), rows(wanted), atol=1e-6) and torch.allclose(model.head.weight, wanted.head.weight, atol=1e-6)


def test_the_trainer_in_bfloat16_and_clipped(transformers, tmp_path):
    model = fit(transformers, tmp_path, Net(), 1, bf16=True)
    assert numpy.isfinite(rows(model)).all() and model.emb.table.steps == 12


def test_the_trainer_resumes_with_the_rows(transformers, tmp_path):
    whole = fit(transformers, tmp_path / "whole", Net(), 4)
    fit(transformers, tmp_path / "half", Net(), 2, save_total_limit=1)
    assert os.listdir(tmp_path / "half") == ["checkpoint-24"]
    (tmp_path / "half").rename(tmp_path / "moved")
    other = fit(transformers, tmp_path / "moved", Net(seed=9), 4, resume=True)
    assert rows(other).tobytes() == rows(whole).tobytes() and other.emb.table.steps == 48
    shutil.rmtree(tmp_path / "moved" / "checkpoint-48" / "sptx_rows")
    with pytest.raises(FileNotFoundError, match="there are no rows of the module 'emb'"):
        fit(transformers, tmp_path / "moved", Net(seed=9), 5, resume=True)


# ---- by hand ----

def test_rows_of_a_model_are_saved_and_loaded(tmp_path):
    model, other = by_hand(1), Net(seed=9)
    assert list(sptx.torch.save_rows(model, tmp_path / "rows")) == ["emb"]
    sptx.torch.load_rows(other, tmp_path / "rows")
    other.load_state_dict(model.state_dict())
    assert rows(other).tobytes() == rows(model).tobytes() and (other.head.weight == model.head.weight).all()
    with pytest.raises(FileNotFoundError, match="'emb': '.*emb.npy' is missing"):
        sptx.torch.load_rows(other, tmp_path)
