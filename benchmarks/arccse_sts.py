"""ArcCSE compared with sentence-transformers' SimCSE recipe and with its own parts: seven STS tasks, several seeds.

    python benchmarks/arccse_sts.py

The arms start from the same base, with [CLS] where their name says nothing else; see arms.py for what they share.
"""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

from arms import Arm, parser_of, run


def untrained(args: argparse.Namespace, out: Path) -> dict[str, Any]:
    """The base as it is, with [CLS]."""
    from likewise.encoder.build import build_encoder

    return {"model": build_encoder(args.base, pooling="cls", head=False).eval()}


def train_with_sentence_transformers(args: argparse.Namespace, out: Path) -> dict[str, Any]:
    """MultipleNegativesRankingLoss on pairs of a sentence and itself; everything else at its trainer's defaults."""
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
    from transformers import set_seed

    from likewise.corpus import prepare
    from likewise.encoder.build import build_encoder
    from likewise.evaluation import sts_b_dev_evaluator

    set_seed(args.seed)
    model: SentenceTransformer = build_encoder(args.base, pooling="cls", head=False)
    longest, model.max_seq_length = model.max_seq_length, args.max_length
    text = prepare(args.corpus).dataset["sentence"]
    evaluator = sts_b_dev_evaluator(args.data)
    trainer = SentenceTransformerTrainer(
        model=model,
        args=SentenceTransformerTrainingArguments(
            output_dir=str(out / "checkpoints"),
            per_device_train_batch_size=args.batch_size,
            max_steps=args.steps,
            seed=args.seed,
            eval_strategy="steps",
            eval_steps=args.eval_steps,
            save_strategy="steps",
            save_steps=args.eval_steps,
            save_total_limit=1,
            load_best_model_at_end=True,
            metric_for_best_model=f"eval_{evaluator.primary_metric}",
            logging_steps=10,
            report_to="none",
            disable_tqdm=True,
        ),
        train_dataset=Dataset.from_dict({"anchor": text, "positive": text}),
        loss=MultipleNegativesRankingLoss(model),
        evaluator=evaluator,
    )
    trainer.train()
    model.max_seq_length = longest
    model.save_pretrained(str(out), create_model_card=False)
    return {"dev": float(trainer.state.best_metric), "step": trainer.state.best_global_step}


# The paper's table 1, its ablations, and things that the paper did not try.
# The paper's pooling; the default keeps the base's own.
CLS = {"pooling": "cls", "triplet_weight": 0.1}
ARMS = {
    "untrained": Arm(untrained, seeds=False),
    "sentence-transformers": Arm(train_with_sentence_transformers),
    "simcse": Arm("simcse", {"pooling": "cls"}),
    "arccon": Arm("arccse", CLS | {"triplet_weight": 0.0, "sam_rho": 0.0}),
    "nt-xent + triplets": Arm("arccse", CLS | {"contrastive": "nt-xent", "sam_rho": 0.0}),
    "arccse": Arm("arccse", CLS | {"sam_rho": 0.05}),
    "arccse, triplet margin 0.1 and weight 1": Arm(
        "arccse", CLS | {"triplet_margin": 0.1, "triplet_weight": 1.0, "sam_rho": 0.0}, seeds=False
    ),
    "simcse, own pooling": Arm("simcse", seeds=False),
    "arccse, own pooling": Arm("arccse"),
    "arccse, mean pooling": Arm("arccse", CLS | {"pooling": "mean", "sam_rho": 0.0}, seeds=False),
}

# The rate at which these rows were measured; that of the preset is lower now (papers_queue.py, arccse-length).
ARMS = {
    name: dataclasses.replace(arm, options={"learning_rate": 1e-4} | arm.options)
    if isinstance(arm.recipe, str)
    else arm
    for name, arm in ARMS.items()
}

# Not of the table: weights between the base's and the trained ones, for SICK-R, which pays for the gain of the others.
OTHERS = {
    "arccse, own pooling, half-way to the base": Arm("arccse", {"interpolation": 0.5, "learning_rate": 1e-4}),
}


def parser() -> argparse.ArgumentParser:
    return parser_of(ARMS | OTHERS, __doc__, arms=list(ARMS), out=Path("runs/arccse-sts"), table="arccse")


if __name__ == "__main__":
    run(ARMS | OTHERS, parser().parse_args())
