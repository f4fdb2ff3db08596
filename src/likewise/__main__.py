"""The entry point of `python -m likewise`: runs the command line."""

from likewise.cli import main

main()
