"""Rules of JAX primitives, by family."""
