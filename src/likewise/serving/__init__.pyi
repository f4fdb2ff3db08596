from .options import ServeOptions as ServeOptions
from .options import ServingError as ServingError
from .start import serve as serve
