"""The transfer tasks compared with both protocols of SentEval, on the same vectors and folds.

    python benchmarks/transfer_protocol.py --model bundled:minilm --outer 3 --classifier logistic

SentEval has two classifiers (Conneau and Kiela 2018; its README). 'logistic' is scikit-learn's logistic regression with
C from 2^-2 to 2^3 (2^-1 to 2^5 where a training set is cross-validated). 'adam' is what most published tables are made
with: one linear layer trained by Adam in batches of 64, stopped by the accuracy on held-out rows, weight decay chosen
from 1e-5 to 1e-2; it is written here anew, many classifiers side by side, and run on the CPU. `--outer` tests only the
first folds of MR, CR, SUBJ and MPQA, for time; likewise's own figure is then of the same folds. Seconds are of the
processor, for a machine that does other work too.
"""

from __future__ import annotations

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import torch

from likewise.evaluation.data import find_data
from likewise.evaluation.pairs import pair_features
from likewise.evaluation.probe import Fold, probe
from likewise.evaluation.registry import TASKS
from likewise.evaluation.tasks.transfer import SEVEN
from likewise.inference import encode, load

DECAYS = (1e-5, 1e-4, 1e-3, 1e-2)
BATCH, EPOCHS_A_TURN, MOST_EPOCHS, TENACITY, RATE = 64, 4, 200, 5, 1e-3


def train(x: torch.Tensor, y: torch.Tensor, checks: list[Fold], decays: list[float], seed: int) -> torch.Tensor:
    """The best weights (K, F, C) of K classifiers, each by the accuracy on its held-out rows."""
    generator = torch.Generator().manual_seed(seed)
    classes, features = int(y.max()) + 1, x.shape[1]
    # torch.nn.Linear's beginning: weights and intercept alike.
    bound = (features - 1) ** -0.5
    weights = (torch.rand(len(checks), features, classes, generator=generator) * 2 - 1) * bound
    best, highest = weights.clone(), torch.full((len(checks),), -1.0)
    first, second = torch.zeros_like(weights), torch.zeros_like(weights)
    misses = torch.zeros(len(checks), dtype=torch.long)
    decay = torch.tensor(decays)[:, None, None]
    live, epoch, step = torch.arange(len(checks)), 0, 0
    rows = [torch.from_numpy(check.train) for check in checks]
    shortest = min(map(len, rows))
    while len(live) and epoch <= MOST_EPOCHS:
        w, m, v = weights[live], first[live], second[live]
        for _ in range(EPOCHS_A_TURN):
            # Folds differ by a row: a pass leaves out the odd one, so that the classifiers stay side by side.
            order = torch.stack([rows[k][torch.randperm(len(rows[k]), generator=generator)[:shortest]] for k in live])
            for start in range(0, shortest, BATCH):
                index = order[:, start : start + BATCH]
                batch = x[index]  # (L, B, F)
                odds = torch.softmax(batch @ w, dim=2)
                odds.scatter_add_(2, y[index][:, :, None], torch.full((*index.shape, 1), -1.0))
                gradient = batch.transpose(1, 2) @ odds / index.shape[1] + decay[live] * w
                step += 1
                m.mul_(0.9).add_(gradient, alpha=0.1)
                v.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
                w -= RATE * (m / (1 - 0.9**step)) / ((v / (1 - 0.999**step)).sqrt() + 1e-8)
        weights[live], first[live], second[live] = w, m, v
        epoch += EPOCHS_A_TURN
        keep = []
        for k in live.tolist():
            held = torch.from_numpy(checks[k].test)
            accuracy = float(((x[held] @ weights[k]).argmax(1) == y[held]).float().mean())
            if accuracy > highest[k]:
                highest[k], best[k] = accuracy, weights[k]
            else:
                if misses[k] >= TENACITY:
                    continue
                misses[k] += 1
            keep.append(k)
        live = torch.tensor(keep, dtype=torch.long)
    return best


def published_protocol(vectors: np.ndarray, labels: np.ndarray, trials: tuple[Fold, ...], seed: int = 1111) -> float:
    """Mean accuracy of the trials by SentEval's classifier, times 100."""
    ones = np.ones((len(vectors), 1), dtype=np.float32)
    x = torch.from_numpy(np.concatenate([vectors.astype(np.float32), ones], axis=1))
    y = torch.from_numpy(np.unique(labels, return_inverse=True)[1])
    found = []
    for trial in trials:
        runs = [(check, decay) for decay in DECAYS for check in trial.checks]
        weights = train(x, y, [check for check, _ in runs], [decay for _, decay in runs], seed)
        scores: dict[float, list[float]] = {decay: [] for decay in DECAYS}
        for (check, decay), w in zip(runs, weights, strict=True):
            scores[decay].append(float(((x[check.test] @ w).argmax(1) == y[check.test]).float().mean()))
        best = max(DECAYS, key=lambda decay: round(100 * float(np.mean(scores[decay])), 2))
        if len(trial.checks) == 1:
            last = trial.checks[0]  # a dev set stops the last training as well
        else:
            shuffled = np.random.default_rng(seed).permutation(trial.train)
            cut = len(shuffled) // 20
            last = Fold(shuffled[cut:], shuffled[:cut])
        w = train(x, y, [last], [best], seed)[0]
        found.append(float(((x[trial.test] @ w).argmax(1) == y[trial.test]).float().mean()))
    return 100 * float(np.mean(found))


def scikit_protocol(vectors: np.ndarray, labels: np.ndarray, trials: tuple[Fold, ...], strengths: list[float]) -> float:
    """Mean accuracy of the trials by scikit-learn's classifier at its defaults, times 100."""
    from sklearn.linear_model import LogisticRegression

    def accuracy(train: np.ndarray, held: np.ndarray, strength: float) -> float:
        model = LogisticRegression(C=strength, random_state=1111).fit(vectors[train], labels[train])
        return float(model.score(vectors[held], labels[held]))

    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it stops after 100 iterations, as it does in SentEval
        for trial in trials:
            dev = {c: np.mean([accuracy(check.train, check.test, c) for check in trial.checks]) for c in strengths}
            found.append(accuracy(trial.train, trial.test, max(strengths, key=lambda c: dev[c])))
    return 100 * float(np.mean(found))


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--model", default="bundled:minilm")
    found.add_argument("--tasks", nargs="+", default=list(SEVEN), choices=list(SEVEN))
    found.add_argument("--data", default=None)
    found.add_argument("--vectors", type=Path, help="keep the vectors of each task in this folder")
    found.add_argument("--classifier", choices=("adam", "logistic"), default="adam", help="of SentEval's two")
    found.add_argument("--outer", type=int, default=10, help="folds of the nested tasks that are tested")
    return found


def main() -> None:
    args = parser().parse_args()
    data, encoder = find_data(args.data), None
    print(f"| task | likewise | seconds | SentEval, {args.classifier} | seconds | difference |")
    print("| --- " + "| ---: " * 5 + "|")
    for name in args.tasks:
        task = TASKS[name]
        _, labels, parts = task.load(data)
        kept = args.vectors / f"{name}.npy" if args.vectors else None
        if kept is not None and kept.is_file():
            vectors = np.load(kept)
        else:
            encoder = encoder or load(args.model, precision="fp32")
            vectors = encode(encoder, task.prepare(data).sentences)
            if kept is not None:
                kept.parent.mkdir(parents=True, exist_ok=True)
                np.save(kept, vectors)
        if task.pairs:
            vectors = pair_features(*np.split(vectors, 2))
        trials = task.trials(labels, parts)[: args.outer]
        start = time.process_time()
        ours = 100 * probe(vectors, labels, trials, task.strengths).accuracy
        middle = time.process_time()
        if args.classifier == "adam":
            theirs = published_protocol(vectors, labels, trials)
        else:
            powers = range(-1, 6) if name in ("trec", "mrpc") else range(-2, 4)
            theirs = scikit_protocol(vectors, labels, trials, [2.0**power for power in powers])
        end = time.process_time()
        print(
            f"| {task.title} | {ours:.2f} | {middle - start:.0f} | {theirs:.2f} | {end - middle:.0f} | "
            f"{ours - theirs:+.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
