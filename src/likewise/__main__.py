"""The command line by `python -m likewise`."""

from likewise_command import main

if __name__ == "__main__":
    main()
