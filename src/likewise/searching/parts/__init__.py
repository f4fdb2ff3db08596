"""The parts of a search, each of which scores candidates."""
