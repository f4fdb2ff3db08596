"""Views of a sentence made on its token embeddings: cutoff of tokens or features, and shuffled positions.

ConSERT (Yan et al. 2021), section 3.3. Letters of the shapes: B batch, T tokens, D embedding. Chance comes from torch's
global generator: a seed fixes it, and a resumed run restores it.
"""

import torch
from torch import Tensor

from likewise.errors import LikewiseError


def cut_tokens(embeddings: Tensor, mask: Tensor, share: float) -> Tensor:
    """Set the vectors of floor(share x tokens) random tokens of each sentence to zero.

    Args:
        embeddings: (B, T, D).
        mask: (B, T), 1 at tokens and 0 at padding.
    """
    _check(share)
    lengths = mask.sum(dim=1, keepdim=True)  # (B, 1)
    # Padding comes last in the random order, so that it takes no token's place.
    chance = torch.rand(mask.shape, device=mask.device).masked_fill(mask == 0, 2.0)
    rank = chance.argsort(dim=1).argsort(dim=1)  # (B, T)
    cut = rank < (share * lengths).long()
    return embeddings.masked_fill(cut[:, :, None], 0.0)


def cut_features(embeddings: Tensor, share: float) -> Tensor:
    """Set floor(share x D) random features to zero in all tokens of a sentence, drawn for each sentence.

    Args:
        embeddings: (B, T, D).
    """
    _check(share)
    n_sentences, _, size = embeddings.shape
    rank = torch.rand(n_sentences, size, device=embeddings.device).argsort(dim=1).argsort(dim=1)  # (B, D)
    return embeddings.masked_fill((rank < int(share * size))[:, None, :], 0.0)


def shuffle_positions(mask: Tensor) -> Tensor:
    """Return the positions of each sentence in random order; those of padding do not change.

    Args:
        mask: (B, T), 1 at tokens, which come first, and 0 at padding.

    Returns:
        (B, T) numbers from 0 to T - 1: to be handed to the transformer as `position_ids`.
    """
    where = torch.arange(mask.shape[1], device=mask.device).expand(mask.shape)
    chance = torch.where(mask.bool(), torch.rand(mask.shape, device=mask.device), where + 1.0)
    return chance.argsort(dim=1)


def _check(share: float) -> None:
    if not 0 <= share <= 1:
        raise LikewiseError(f"the share to cut must be between 0 and 1, not {share}")
