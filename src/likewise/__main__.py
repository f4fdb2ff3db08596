"""The entry point of the command line, also by `python -m likewise`."""


def main() -> None:
    """Run the command line; Ctrl-C while it is imported ends it as later."""
    try:
        from likewise.cli import main

        main()
    except KeyboardInterrupt:
        raise SystemExit(130) from None


if __name__ == "__main__":
    main()
