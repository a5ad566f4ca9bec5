"""Settings of all tests: a slow machine is no failure, so hypothesis has no deadline (pytest-timeout has one)."""

from hypothesis import settings

settings.register_profile("opwright", deadline=None)
settings.load_profile("opwright")
