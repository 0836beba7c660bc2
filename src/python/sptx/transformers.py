"""Hugging Face's Trainer: rows of tables in its checkpoints.

    trainer = transformers.Trainer(model, arguments, train_dataset=data, callbacks=[sptx.transformers.Rows()])
    trainer.train(resume_from_checkpoint=True)         # takes up rows and model where they were
"""

import os
from typing import Any

from transformers import TrainerCallback

from .torch import load_rows, of_rows, save_rows, step_rows

__all__ = ["Rows"]
_FOLDER = "sptx_rows"


class Rows(TrainerCallback):
    """A callback that saves the rows of a model's tables in each checkpoint, in its folder sptx_rows, and loads them when training resumes.

    The model's state_dict has a fingerprint of each table in place of its rows. Rows are saved with their optimizer's state; the Trainer
    removes them with the checkpoint (save_total_limit). Of a shared table rank 0 saves and loads.

    Updates. A table is updated by each backward(), so with gradient_accumulation_steps=n its rows get n updates where the model gets one,
    each by a gradient that the Trainer has divided by n (a model whose forward() takes **kwargs divides by itself). Modules with
    accumulate=True wait: this callback calls their step() before the optimizer's. max_grad_norm reaches no row; sptx.Table(clip=) bounds the
    gradient of a row. bf16=True needs nothing; with fp16=True give the module scaler=trainer.accelerator.scaler.
    """

    def on_init_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        _mark(model, "after")

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        _mark(model, "after")
        asked = args.resume_from_checkpoint
        newest = os.path.join(args.output_dir, "checkpoint-%d" % state.global_step)
        _load_due(model, asked if isinstance(asked, str) and os.path.isdir(asked) else newest)

    def on_train_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        _load_due(model, state.best_model_checkpoint or args.output_dir)  # load_best_model_at_end
        _mark(model, "")

    def on_save(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        if args.should_save:
            save_rows(model, os.path.join(args.output_dir, "checkpoint-%d" % state.global_step, _FOLDER))

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        step_rows(model)


def _mark(model: Any, when: str) -> None:
    for _name, module in of_rows(model):
        module._beside = when


def _load_due(model: Any, checkpoint: str) -> None:
    """Loads the rows of a checkpoint whose state_dict has been loaded, if the tables have others."""
    if any(module._due for _, module in of_rows(model)):
        load_rows(model, os.path.join(checkpoint, _FOLDER))
