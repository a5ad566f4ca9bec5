"""Training: what `compile`, `fit`, `evaluate` and `predict` are made of.

Lives here: trainer.py (the methods of models), losses and metrics by output, batches of data, the progress bar.
Not here: callbacks (callbacks.py), losses and metrics themselves.
"""
