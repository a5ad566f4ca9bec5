"""Graph to plan: the order of kernels, where results lie, and when memory is free again.

Lives here: `Plan` (plan.py), the offline arena planner (memory.py).  Not here: tapes, traces, files. The compiler takes
a Graph and gives a Plan, and knows neither who made the one nor who runs the other.
"""

from .memory import Allocation, plan_arena
from .plan import Plan

__all__ = ["Allocation", "Plan", "plan_arena"]
