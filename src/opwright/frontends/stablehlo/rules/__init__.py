"""Rules of StableHLO's operations, by family."""
