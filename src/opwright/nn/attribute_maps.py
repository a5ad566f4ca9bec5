"""`keras.utils.Config`: settings of a program as attributes.

Lives here: the class.  Not here: the package's own settings (config.py), configurations of layers (configuration.py).
"""

from __future__ import annotations

import difflib
import json
from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from typing import Any


class Config:
    """Settings by name, as attributes or keys, which `freeze` protects from changes.

    >>> config = ow.keras.utils.Config(rate=0.1)
    >>> config.units = 3
    >>> config["rate"], config.as_dict()
    (0.1, {'rate': 0.1, 'units': 3})

    raises AttributeError and KeyError that name the nearest setting, ValueError for changes of frozen ones
    """

    def __init__(self, **kwargs: Any) -> None:
        vars(self)["_config"], vars(self)["_frozen"] = kwargs, False

    @property
    def frozen(self) -> bool:
        """Whether changes raise an error."""
        return bool(vars(self)["_frozen"])

    def freeze(self) -> None:
        """Refuse changes from now on."""
        vars(self)["_frozen"] = True

    def unfreeze(self) -> None:
        """Allow changes again."""
        vars(self)["_frozen"] = False

    def _changed(self) -> dict[str, Any]:
        if self.frozen:
            raise ValueError("Cannot mutate attribute(s) because the config is frozen.")
        settings: dict[str, Any] = vars(self)["_config"]
        return settings

    def as_dict(self) -> dict[str, Any]:
        """Return a copy as a dictionary."""
        return dict(vars(self)["_config"])

    def to_json(self) -> str:
        """Return the settings as JSON."""
        return json.dumps(vars(self)["_config"])

    def keys(self) -> KeysView[str]:
        """Return the names."""
        return self.as_dict().keys()

    def values(self) -> ValuesView[Any]:
        """Return the values."""
        return self.as_dict().values()

    def items(self) -> ItemsView[str, Any]:
        """Return pairs of names and values."""
        return self.as_dict().items()

    def pop(self, *args: Any) -> Any:
        """Remove and return a setting."""
        return self._changed().pop(*args)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Change settings, as of a dictionary."""
        self._changed().update(*args, **kwargs)

    def get(self, keyname: str, value: Any = None) -> Any:
        """Return a setting, or the value without it."""
        return vars(self)["_config"].get(keyname, value)

    def __getattr__(self, name: str) -> Any:
        settings = vars(self).get("_config", {})
        if name in settings:
            return settings[name]
        nearest = difflib.get_close_matches(name, settings, n=1, cutoff=0.7)
        raise AttributeError(f"Unknown attribute: '{name}'." + (f" Did you mean '{nearest[0]}'?" if nearest else ""))

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(type(self), name):
            raise AttributeError(f"{name!r} is a method of Config: use another name for the setting")
        self._changed()[name] = value

    def __delattr__(self, name: str) -> None:
        del self._changed()[name]

    def __getitem__(self, key: str) -> Any:
        return vars(self)["_config"][key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._changed()[key] = value

    def __delitem__(self, key: str) -> None:
        del self._changed()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(vars(self)["_config"])

    def __contains__(self, key: object) -> bool:
        return key in vars(self)["_config"]

    def __len__(self) -> int:
        return len(vars(self)["_config"])

    def __repr__(self) -> str:
        return f"<Config {self.as_dict()}>"
