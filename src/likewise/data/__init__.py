"""Bundled parts of the package registry, and downloads."""
