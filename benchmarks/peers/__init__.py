"""The rows in other frameworks, each run by that framework's own Python and importing nothing of Opwright."""
