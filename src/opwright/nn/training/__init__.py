"""Training: `compile`, `fit`, `evaluate` and `predict` of models.

Lives here: trainer.py (the methods of models), losses and metrics by output, batches of data.
Not here: callbacks (callbacks/), losses and metrics themselves.
"""
