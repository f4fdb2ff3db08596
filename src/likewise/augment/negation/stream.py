"""A corpus to its negations: streamed, in parallel, resumable and cached."""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import batched, islice
from pathlib import Path

from likewise.augment.negation import parser
from likewise.augment.negation.api import BATCH_SIZE, negate_batch
from likewise.augment.negation.cache import NegationCache
from likewise.augment.negation.rules import RULES_VERSION, Negation
