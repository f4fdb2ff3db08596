from .paged_format import PagedFormat as PagedFormat
