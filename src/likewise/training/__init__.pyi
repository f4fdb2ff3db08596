from .objectives import OBJECTIVES as OBJECTIVES
from .objectives import FinetuneOptions as FinetuneOptions
from .objectives import LabelledDataError as LabelledDataError
from .objectives import STSOptions as STSOptions
from .objectives import TripletOptions as TripletOptions
from .trainer import TrainingError as TrainingError
from .training_result import TrainingResult as TrainingResult
