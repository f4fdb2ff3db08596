from .labelled_rows import LabelledDataError as LabelledDataError
from .objectives import OBJECTIVES as OBJECTIVES
from .result import TrainingResult as TrainingResult
from .trainer import TrainingError as TrainingError
