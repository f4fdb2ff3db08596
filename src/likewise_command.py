"""The entry point of the command line, outside the package, whose import Ctrl-C may interrupt."""


def main() -> None:
    """Run the command line; Ctrl-C while it is imported ends it as Ctrl-C does later, without a traceback."""
    try:
        from likewise.cli import main

        main()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
