from .options import ServeOptions as ServeOptions
from .options import ServingError as ServingError
from .running import serve as serve
