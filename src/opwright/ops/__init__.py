"""The operator catalogue: each operator whole, in one place.

Lives here: the machinery of definitions (definition.py, attributes.py, call.py), the two interpreters' meeting point
(dispatch.py), reverse-mode differentiation over recorded calls (autodiff.py), and one module per operator family.
Not here: who runs a call (eager/, tracing/), and the `.tflite` dialect (lite/ops/).
"""
