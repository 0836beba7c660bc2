"""PyTorch Lightning: rows of tables beside the checkpoints of a Trainer.

    trainer = lightning.Trainer(callbacks=[sptx.lightning.Rows()])
    trainer.fit(model, loader, ckpt_path="last")        # takes up rows and model where they were
"""

import importlib.util
import os
import shutil
import sys
from typing import Any, Dict, Optional

from .torch import load_rows, of_rows, save_rows, step_rows

if "pytorch_lightning" in sys.modules or not importlib.util.find_spec("lightning"):
    from pytorch_lightning.callbacks import Callback
    from pytorch_lightning.plugins.io import CheckpointIO
else:
    from lightning.pytorch.callbacks import Callback
    from lightning.pytorch.plugins.io import CheckpointIO

__all__ = ["Rows"]


class Rows(Callback):
    """A callback that saves the rows of a model's tables beside each checkpoint, in the folder CHECKPOINT.rows, and loads them with it.

    A checkpoint of Lightning's has a fingerprint of each table in place of its rows. This callback writes the rows (with their optimizer's state)
    before the checkpoint, removes them with it (save_top_k), and loads them before the model's state_dict, also if the files were moved
    together. Of a shared table rank 0 saves and loads.

    Updates. A table is updated by each backward(), so with accumulate_grad_batches=n its rows get n updates where the model gets one, each
    by a gradient that Lightning has divided by n. Modules with accumulate=True wait: this callback calls their step() before the
    optimizer's. gradient_clip_val reaches no row; sptx.Table(clip=) bounds the gradient of a row. precision="bf16-mixed" needs nothing;
    with "16-mixed" give the module scaler=trainer.precision_plugin.scaler.

    Several processes. strategy="ddp_spawn" pickles the model, and a table is not pickled (TypeError). With "ddp", which starts the script
    again in each process, and under torchrun, open the table with shared="name": it is one table for all processes.
    """

    def setup(self, trainer: Any, pl_module: Any, stage: Optional[str] = None) -> None:
        if not isinstance(trainer.strategy.checkpoint_io, _Beside):
            trainer.strategy.checkpoint_io = _Beside(trainer.strategy.checkpoint_io, pl_module)
        for _, module in of_rows(pl_module):
            module._beside = "before"

    def teardown(self, trainer: Any, pl_module: Any, stage: Optional[str] = None) -> None:
        if isinstance(trainer.strategy.checkpoint_io, _Beside):
            trainer.strategy.checkpoint_io = trainer.strategy.checkpoint_io.inner
        for _, module in of_rows(pl_module):
            module._beside = ""

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any, *_: Any) -> None:
        step_rows(pl_module)


class _Beside(CheckpointIO):
    """Writes, reads and removes a checkpoint by another CheckpointIO, and the rows beside it."""

    def __init__(self, inner: Any, model: Any) -> None:
        self.inner, self.model = inner, model

    def save_checkpoint(self, checkpoint: Dict[str, Any], path: Any, storage_options: Any = None) -> None:
        """Writes the rows first, so that a checkpoint never lacks them; then its entries of the tables name their files."""
        for name, module in save_rows(self.model, _rows_of(path)).items():
            key = name + "._extra_state" if name else "_extra_state"
            if key in checkpoint.get("state_dict", {}):
                checkpoint["state_dict"][key] = module.get_extra_state()
        self.inner.save_checkpoint(checkpoint, path, storage_options)

    def load_checkpoint(self, path: Any, *arguments: Any, **named: Any) -> Any:
        checkpoint = self.inner.load_checkpoint(path, *arguments, **named)
        if os.path.isdir(_rows_of(path)):
            load_rows(self.model, _rows_of(path))
        return checkpoint

    def remove_checkpoint(self, path: Any) -> None:
        self.inner.remove_checkpoint(path)
        shutil.rmtree(_rows_of(path), ignore_errors=True)

    def teardown(self) -> None:
        self.inner.teardown()


def _rows_of(path: Any) -> str:
    return os.fspath(path).rstrip("/") + ".rows"
