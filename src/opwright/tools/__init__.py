"""The command line and its reports. Nothing imports this package."""
