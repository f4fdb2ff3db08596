"""Documents as pages: Word, PowerPoint, Excel, PDF, web pages, mails, e-books, OpenDocument, notebooks, other markup.

The formats are reached through the one list of formats (`likewise.corpus.known_formats`), by entry points of the group
`likewise.formats`; nothing below imports this package.
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach_stub(__name__, __file__)
