from .encoded_files import encode_file as encode_file
from .load_model import load as load
from .model_export import export as export
from .vectors import encode as encode
from .vectors import similarity as similarity
