from .serve_options import ServeOptions as ServeOptions
from .serve_options import ServingError as ServingError
from .start import serve as serve
