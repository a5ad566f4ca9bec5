"""Connectionist temporal classification: CTCLoss, with its gradient.

Not here: its kernel (../kernels/ctc.py), other losses (normalization.py).
"""

from __future__ import annotations

from ...core.dtypes import float32
from ..loops.buffers import Buffer
from ..loops.domain_ops import Alignment
from .context import LoweringContext, NoLowering
from .registry import rule


@rule("CTCLoss")
def ctc_loss(ctx: LoweringContext) -> None:
    """Lower the loss of float32 logits with its gradient."""
    logits, labels, label_length, logit_length = (ctx.operand(i) for i in range(4))
    if logits.dtype is not float32:
        raise NoLowering(f"logits {logits}")
    batch = logits.shape[1]
    if labels.shape[0] != batch or any(o.shape != (batch,) for o in (label_length, logit_length)):
        raise NoLowering(f"labels {labels} of lengths {label_length} for logits {logits} of lengths {logit_length}")
    outputs = [ctx.output(shape, i).buffer for i, shape in enumerate(((batch,), logits.shape))]
    operands = [o.buffer for o in (logits, labels, label_length, logit_length)]

    def make(packed: Buffer, results: tuple[tuple[Buffer, int], ...]) -> None:
        ctx.add(Alignment, packed, *operands, int(ctx.attr("blank_index")), results)

    ctx.with_results(make, *outputs)
