"""The version, in its own file so that the build reads it without importing torch."""

__version__ = "1.0.0rc1"
