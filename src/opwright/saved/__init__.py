"""Save and load of traced functions and variables. Empty until `saved_model` is built."""
