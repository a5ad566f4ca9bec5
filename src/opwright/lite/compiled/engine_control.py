"""The compiled engine in the life of an interpreter: applied, planned ahead, switched to, withdrawn.

Lives here: `EngineControl`, what an interpreter knows of its engine.
Not here: the engine (engine.py), plans of new models (ahead.py), delegates of callers (../runtime/delegation.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...compiler import plan_cache, tuning
from ...core import flags
from ...core.errors import OpError
from ...core.lazy_imports import later
from ...core.processors import usable_processors
from ..runtime.tensor_access import ExportedViews, check_exported_views

if TYPE_CHECKING:
    from ..runtime.ownership import Ownership
    from ..runtime.subgraph import Subgraph
    from . import ahead, engine
else:  # not needed by a model with a cached plan
    ahead, engine = later(".ahead", __package__), later(".engine", __package__)


class EngineControl:
    """The part of an interpreter that runs nodes as machine code, once there is some."""

    _engine: engine.Engine | ahead.Ahead | None  # the applied compiled engine, or its pending plan
    _waiting: bool  # for kernels under compilation
    _source: Any
    _content: Any
    _threads: int
    _ownership: Ownership
    _exported_views: ExportedViews
    _custom_resolver: Any
    _delegate_services: Any

    if TYPE_CHECKING:

        @property
        def _subgraphs(self) -> list[Subgraph]: ...

        def _delegate(self, delegate: Any, strict: bool) -> None: ...

        def _planning(self, identity: str) -> Callable[[ahead.Shapes], Any]:
            """Return a function that plans the model for its inputs' shapes, without the interpreter."""

    def _withdraw(self) -> None:
        """Return the compiled engine's nodes to the interpreter; the next allocation applies it again."""
        if self._engine is not None:
            if self._engine.runs_nodes():
                self._ownership.check_idle("changed")
            self._engine.withdraw()
            self._engine, self._waiting = None, False

    def _start_engine(self) -> None:
        """Apply the compiled engine; or first plan a new model in the background, if allowed."""
        if (
            self._background
            and self._custom_resolver is None
            and self._delegate_services is None
            and plan_cache.may_find()
        ):
            identity = plan_cache.key_of_model(self._source, self._content)
            if identity is not None and not ahead.was_planned(identity, ahead.shapes_of(self._subgraphs)):
                self._engine = ahead.Ahead(self._subgraphs, self._planning(identity))
                return
        self._engine = self._new_engine()

    def _new_engine(self, late: bool = False) -> engine.Engine:
        return engine.Engine(
            self._subgraphs,
            lambda delegate: self._delegate(delegate, strict=False),
            self._source,
            self._content,
            self._background,
            late,
        )

    @property
    def _background(self) -> bool:
        """Whether a thread compiles while the reference kernels run; not if loading measures."""
        return flags.background and not tuning.is_on()

    def _switch_engine(self) -> None:
        """Let the compiled engine claim its nodes, if it is ready and no view of a tensor is alive."""
        assert self._engine is not None
        if isinstance(self._engine, ahead.Ahead) and not self._engine.done:
            return
        try:
            for i in range(len(self._subgraphs)):
                check_exported_views(self._exported_views, i)
        except OpError:
            return
        if not isinstance(self._engine, ahead.Ahead):
            self._waiting = self._engine.switch()
        elif self._engine.lost:
            self._waiting = False
        else:
            self._engine = self._new_engine(late=True)
            self._waiting = self._engine.claim_prepared()

    def _blas_threads(self) -> int:
        """Return the threads of reference kernels' products: after the first answer, the compiler has a processor."""
        if self._threads == 1:
            return 1
        planning = isinstance(self._engine, ahead.Ahead) and self._engine.answered
        return max(1, min(self._threads, usable_processors() - planning))
