"""How much of the coherence discriminator's accuracy hangs on its LSTM: frozen vectors of an encoder in its place.

    python benchmarks/context/frozen_encoder.py --work runs/contexts --documents 700 --encoder bundled:minilm

Takes the head, loss, batches and held-out negatives of the discriminator, over the first documents of a workspace's
index. The vectors are kept next to the index: a second run takes a minute.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch

import likewise
from likewise.context.discriminator import Discriminator, loss_of
from likewise.context.discriminator_data import (
    ContextBatch,
    batch_of_chunks,
    epoch_batches,
    split_documents,
    training_units,
)
from likewise.context.discriminator_training import Accuracy, accuracy_of
from likewise.context.indexing import open_store
from likewise.context.workspace import Workspace
from likewise.runs.provenance import machine
from likewise.runs.whole_files import written_whole


def vectors_of(texts: list[str], encoder: str, path: Path) -> torch.Tensor:
    """Normalised vectors (S, D) of the sentences."""
    if not path.exists():
        began = time.process_time()
        found = likewise.load(encoder).encode(texts, show_progress_bar=False, normalize_embeddings=True)
        with written_whole(path) as unfinished, unfinished.open("wb") as file:
            np.save(file, found)
        print(f"{len(texts):,} sentences encoded in {time.process_time() - began:.0f} s of CPU")
    return torch.from_numpy(np.load(path)).float()


def cells(found: Accuracy) -> str:
    """The columns of a row, in percent."""
    shares = found.accuracy, found.positive, found.same_document, found.other_document
    return " | ".join(f"{100 * share:.1f}" for share in shares)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--documents", type=int, default=700)
    parser.add_argument("--encoder", default="bundled:minilm")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    store = open_store(Workspace(args.work).require("index"))
    chunks = np.flatnonzero(store.documents < args.documents)
    texts = [sentence for part in store.sentences(0, len(chunks)) for sentence in part]
    path = args.work / f"vectors-{args.encoder.replace('/', '-').replace(':', '-')}-{args.documents}.npy"
    vectors = vectors_of(texts, args.encoder, path)
    train, choose, test = split_documents(args.documents, 0.1, args.seed)

    def examples(chunks: np.ndarray) -> tuple[torch.Tensor, ContextBatch]:
        # The store begins with these documents: a sentence's number is the row of its vector.
        found = batch_of_chunks(store, chunks)
        return vectors[torch.from_numpy(found.sentences)], found

    def chunks_of(documents: np.ndarray) -> np.ndarray:
        return np.flatnonzero(np.isin(store.documents, documents))

    # The LSTM is there and never read: 2H is the size of what stands in its place.
    model = Discriminator(2, 1, vectors.shape[1] // 2, store.left, store.right, "product", 300)
    with torch.no_grad():  # one space for sentence and context, as the stage begins
        places = store.left + store.right
        model.meet_context.weight.copy_(model.meet_sentence.weight.repeat(places, 1))
        model.meet_context.bias.copy_(model.meet_sentence.bias.repeat(places))
        model.scales.fill_(4.0)
        model.sum_sentence.bias.fill_(-2.0)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    units = training_units(train, store.documents, store.lengths, 128)
    held, told = examples(chunks_of(choose)), examples(chunks_of(test))
    print(
        f"machine {machine()}\n{args.documents} documents, {len(texts):,} sentences, {args.encoder}, seed {args.seed}"
    )
    print("| epoch | accuracy | own sentence | same document | other document |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    best, chosen = -1.0, ""
    for epoch in range(args.epochs):
        for batch in epoch_batches(units, store.lengths, 192, args.seed, epoch):
            optimizer.zero_grad()
            loss_of(model, *examples(batch)).backward()
            optimizer.step()
        now = accuracy_of(model, *held, args.seed)
        print(f"| {epoch + 1} | {cells(now)} |", flush=True)
        if now.accuracy > best:
            best, chosen = now.accuracy, cells(accuracy_of(model, *told, args.seed))
    print(f"| chosen | {chosen} |  <- documents that chose nothing")


if __name__ == "__main__":
    main()
