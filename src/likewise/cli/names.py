"""The names of recipes, objectives and baselines with a line on each: help and completion import no torch for them."""

from __future__ import annotations

from importlib.metadata import entry_points

RECIPES = {
    "arccse": "Angular margin contrastive learning on dropout twins, with entailment triplets of masked spans.",
    "simcse": "Contrastive learning on dropout twins (NT-Xent): ArcCSE without margin, triplets and SAM.",
    "sncse": "Contrastive learning at the mask of a prompt, with the sentence's own negation as a soft negative.",
    "gclsr": "Word vectors, word attention and a TextCNN, trained on noisy views in groups of features; no "
    "transformer.",
    "esimcse": "SimCSE with repeated sub-words in the positive and a momentum encoder's queue of further negatives.",
    "consert": "Contrastive learning on views made of the token embeddings: cutoff of features or tokens, shuffling.",
    "ct": "Contrastive tension: two encoders agree on equal sentences and differ on different ones.",
    "tsdae": "A denoising auto-encoder: a decoder makes the sentence again from the vector of its remains.",
    "mask-distillation": "The mask of a prompt learns the base's own vector: a better start for sncse.",
    "light": "A mean of word vectors and a small network learn an encoder's vectors: fast, without a transformer.",
}
OBJECTIVES = {
    "nli": "Natural language inference: a softmax classifier over the two vectors and their difference.",
    "sts": "Rated pairs: regression of the cosine on the rating, on STS-B train where nothing else is named.",
    "triplets": "Triplets: a sentence should be nearer to one of its own section than to one of another.",
}
BASELINES = {
    "word-average": "The average of word vectors, as GloVe's.",
    "last-average": "The average over the tokens of a transformer's last layer.",
    "first-last-average": "The average over the tokens of a transformer's first and last layer.",
    "cls": "A transformer's last layer at [CLS].",
    "whitening": "Vectors of mean zero and covariance one on the corpus (BERT-whitening).",
    "flow": "A normalizing flow under which the corpus's vectors are Gaussian (BERT-flow).",
}


def all_recipes() -> dict[str, str]:
    """Return the recipes of this library and those that installed packages register."""
    others = sorted(entry.name for entry in entry_points(group="likewise.recipes") if entry.name not in RECIPES)
    return RECIPES | dict.fromkeys(others, "A recipe of another package.")
