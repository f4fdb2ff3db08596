from .objectives import OBJECTIVES as OBJECTIVES
from .objectives import LabelledDataError as LabelledDataError
from .result import TrainingResult as TrainingResult
from .trainer import TrainingError as TrainingError
