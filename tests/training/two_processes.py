"""What one of several processes does for `test_processes.py`.

Alone it is the oracle: the same losses on the whole batch.
"""

import json
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import nn

from likewise import train
from likewise.recipes import find_recipe
from likewise.runs import processes

ROWS = 16


def measured(recipe: str, options: dict, texts: list[dict], base: str, words: str) -> dict:
    """Return the loss of two batches, the second after the first, and the norm and a sample of the gradient."""
    method = find_recipe(recipe)
    chosen = method.options(None, batch_size=ROWS // processes.count(), **options)
    torch.manual_seed(1)
    if recipe in ("light", "gclsr"):
        source = base if recipe == "light" else words
        encoder = method.build_encoder(source, chosen, [row["sentence"] for row in texts])
    else:
        encoder = method.build_encoder(base, chosen)
    loss, collate = method.build_loss(encoder, chosen), method.build_collator(encoder, chosen, 1)
    teacher = torch.randn(len(texts), 32, generator=torch.Generator().manual_seed(3)).to(torch.float16).numpy()
    texts = [row | {"teacher": vector.tobytes()} for row, vector in zip(texts, teacher, strict=True)]
    encoder.train()
    for module in [*encoder.modules(), *loss.modules()]:
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    found: dict = {}
    for step in range(2):
        batch = texts[step * ROWS : (step + 1) * ROWS]
        size = ROWS // processes.count()
        mine = slice(processes.number() * size, (processes.number() + 1) * size)
        # The pairs of contrastive tension are made within a batch: these are the whole one's.
        inputs = {key: value[mine] for key, value in collate(batch).items()} if recipe == "ct" else collate(batch[mine])
        ends = ("_input_ids", "_sentence_embedding")
        columns = dict.fromkeys(key.removesuffix(end) for end in ends for key in inputs if key.endswith(end))
        features = [
            {key.removeprefix(f"{column}_"): value for key, value in inputs.items() if key.startswith(f"{column}_")}
            for column in columns
        ]
        value = loss(features, None)
        value = sum(value.values()) if isinstance(value, dict) else value
        encoder.zero_grad()
        value.backward()
        trained = [one for one in encoder.parameters() if one.requires_grad]
        if processes.count() > 1:
            processes.average_gradients(trained)
        gradient = torch.cat([one.grad.reshape(-1) for one in trained if one.grad is not None])
        mean = processes.mean_of_processes(value.detach()) if processes.count() > 1 else value.detach()
        found[f"loss {step}"], found[f"norm {step}"] = float(mean), float(gradient.norm())
        found[f"gradient {step}"] = gradient[:: max(1, len(gradient) // 2000)].tolist()
        found[f"largest {step}"] = float(gradient.abs().max())
    return found


def main(folder: Path) -> None:
    """Measure the losses, then train."""
    given = SimpleNamespace(**json.loads((folder / "given.json").read_text()))
    processes.start()
    torch.set_num_threads(1)
    losses = {name: measured(*case, given.rows, given.base, given.words) for name, case in given.cases.items()}
    chunk = 7 if processes.count() > 1 else 0  # gradient caching changes nothing either
    size, out = 64 // processes.count(), folder / f"run-{processes.count()}"
    given.options |= {"batch_size": size, "chunk": chunk}
    train(given.recipe, given.corpus, base=given.base, out=out, quiet=True, **given.options)
    if processes.is_first():
        (folder / f"losses-{processes.count()}.json").write_text(json.dumps(losses))
