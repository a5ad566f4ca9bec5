"""CallSpec: the parameters of a layer class's `call` and `build`, read once per class.

Lives here: names, defaults, masks of arguments. Not here: calls (layer.py), their context (layer_calls.py).
"""

from __future__ import annotations

from ..core.introspection import signature_of


class CallSpec:
    """Parameters of a class's `call` and `build`."""

    def __init__(self, cls: type) -> None:
        # Layers of this package cast their weights themselves.
        self.autocasts = not (cls.call.__module__ or "").startswith("opwright.")  # type: ignore[attr-defined]
        parameters = list(signature_of(cls.call).parameters.values())[1:]  # type: ignore[attr-defined]
        self.names = [p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        self.known = frozenset(self.names)
        positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        self.required = [p.name for p in positional if p.default is p.empty]
        self.first = self.names[0] if self.names else None
        self.training, self.mask = "training" in self.known, "mask" in self.known
        by_name = {p.name: p.default for p in parameters}
        default = by_name.get("training")
        self.default_training = default if isinstance(default, (bool, int)) else None
        self.masks = {n: f"{n}_mask" for n in self.names if f"{n}_mask" in self.known}
        build = signature_of(cls.build).parameters.values()  # type: ignore[attr-defined]
        parameter_names = [p.name for p in list(build)[1:] if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        self.build_names = parameter_names if len(parameter_names) > 1 else []
        self.free = any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)
        needed = [p.name for p in list(build)[2:] if p.default is p.empty and p.name in parameter_names]
        self.build_unnamed = next((name for name in needed if not name.endswith("_shape")), None)
