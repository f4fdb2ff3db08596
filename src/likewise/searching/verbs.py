"""The verbs of search on the command line, which the entry points `likewise.commands` name; it imports nothing."""

VERBS = {
    "Use": {
        "index": ("likewise.searching.commands:index", "Index files for search, or update an index."),
        "choose": (
            "likewise.searching.commands:choose",
            "Find out which base and which search are best for your text.",
        ),
        "search": ("likewise.searching.commands:search", "Search an index by meaning and by words."),
        "duplicates": (
            "likewise.searching.commands:duplicates",
            "Find texts with the same meaning, and keep one of each group.",
        ),
        "serve": ("likewise.searching.commands:serve", "Serve models and indexes over HTTP, with OpenAI's API."),
    },
}
"""Heading of the help to its verbs, each with what makes its command and its summary."""
