from .config import config_of as config_of
from .config import read_config as read_config
from .finetuning import finetune as finetune
from .objectives import OBJECTIVES as OBJECTIVES
from .objectives.rows import LabelledDataError as LabelledDataError
from .recipe_run import train as train
from .running import TrainingResult as TrainingResult
from .trainer import TrainingError as TrainingError
