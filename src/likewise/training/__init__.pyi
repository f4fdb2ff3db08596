from .labelled_rows import LabelledDataError as LabelledDataError
from .objectives import OBJECTIVES as OBJECTIVES
from .on_labels import finetune as finetune
from .on_text import train as train
from .result import TrainingResult as TrainingResult
from .trainer import TrainingError as TrainingError
