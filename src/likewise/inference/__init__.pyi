from .encoding import encode as encode
from .encoding import similarity as similarity
from .encoding import undisturbed as undisturbed
from .exporting import export as export
from .files import encode_file as encode_file
from .loading import LoadError as LoadError
from .loading import check_loadable as check_loadable
from .loading import load as load
