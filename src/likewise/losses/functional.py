"""The tensor math of the losses: embeddings in, a scalar out.

Letters of the shapes: B sentences of a batch, N candidates (B times the number of processes), D embedding. Everything
is computed in float32, also under autocast: an angle near zero does not survive bfloat16. An `offset` is the number of
candidates that belong to processes before this one; `temperature` is tau. Shapes that do not fit, a temperature of 0 or
less, and bounds that contradict each other are a LikewiseError.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from likewise.errors import LikewiseError

SMALLEST_SINE_SQUARED = 1e-6
"""Below this, the sine of the angle of a positive pair is held constant, so that its gradient stays finite: 0.06
degrees from 0 or 180. Float32 cannot tell the cosine of half that angle from 1."""


def cosine_distance(vectors: Tensor, targets: Tensor) -> Tensor:
    """Return the mean of 1 - cos(v_i, t_i) of rows (B, D) and (B, D); the targets are detached here."""
    return (1 - F.cosine_similarity(vectors, targets.detach(), dim=-1)).mean()


def profile_divergence(sentences: Tensor, contexts: Tensor, logits: Tensor, temperature: float = 0.05) -> Tensor:
    """Return the mean divergence of the sentences' distributions over contexts from a teacher's distributions.

    L_i = KL(softmax over j of logits_ij || softmax over j of cos(s_i, c_j) / tau).

    Args:
        sentences, contexts: Vectors (B, D) and (C, D).
        logits: Logits (B, C) of the teacher, detached here.
        temperature: Temperature tau.
    """
    _check_temperature(temperature)
    logs = (cosine_matrix(sentences, contexts) / temperature).log_softmax(dim=1)
    return F.kl_div(logs, logits.detach().float().log_softmax(dim=1), reduction="batchmean", log_target=True)


def cosine_matrix(rows: Tensor, columns: Tensor) -> Tensor:
    """Return the cosine of each row vector with each column vector: (B, D), (N, D) -> (B, N), float32."""
    return F.normalize(rows.float(), dim=-1) @ F.normalize(columns.float(), dim=-1).T


def add_angle(cosine: Tensor, margin_degrees: float) -> Tensor:
    """Return cos(theta + m) for cos(theta), of any shape, monotone in theta and with finite gradients.

    cos(theta + m) = cos(theta) cos(m) - sin(theta) sin(m). Two departures from the bare formula:

    - sin(theta)^2 is at least `SMALLEST_SINE_SQUARED`, because its root has no derivative at 0; - beyond theta + m =
    180 degrees, the cosine would rise again and reward worse pairs. It is replaced by cos(theta) + cos(m) - 1, which is
    continuous, decreasing in theta, and bounded. (ArcFace, Deng et al. 2019, is discontinuous there.)
    """
    if margin_degrees == 0:
        return cosine
    margin = math.radians(margin_degrees)
    sine = (1 - cosine.square()).clamp(min=SMALLEST_SINE_SQUARED).sqrt()
    shifted = cosine * math.cos(margin) - sine * math.sin(margin)
    past_the_seam = cosine + math.cos(margin) - 1
    return torch.where(cosine > -math.cos(margin), shifted, past_the_seam)


def arccon(
    anchors: Tensor, positives: Tensor, margin_degrees: float = 10.0, temperature: float = 0.05, offset: int = 0
) -> Tensor:
    """Return the additive angular margin contrastive loss (ArcCSE, equation 3), the mean over the anchors.

    L_i = -log( e^(cos(t_ii + m)/tau) / (e^(cos(t_ii + m)/tau) + sum over j != i of e^(cos(t_ij)/tau)) ),
    t_ij the angle between anchor i and positive j.

    Args:
        anchors: (B, D) one view of each sentence.
        positives: (N, D) the other view; row `offset + i` belongs to anchor i, the others are its negatives.
    """
    if anchors.ndim != 2 or positives.ndim != 2 or anchors.shape[1] != positives.shape[1]:
        raise LikewiseError(
            f"anchors must be (B, D) and positives (N, D), not {tuple(anchors.shape)} and {tuple(positives.shape)}"
        )
    if offset + len(anchors) > len(positives):
        raise LikewiseError(f"{len(anchors)} anchors from row {offset} on need as many positives, not {len(positives)}")
    if not 0 <= margin_degrees <= 90:
        raise LikewiseError(f"the margin is an angle from 0 to 90 degrees, not {margin_degrees}")
    _check_temperature(temperature)
    cosines = cosine_matrix(anchors, positives)  # (B, N)
    own = _own(anchors, offset)
    with_margin = add_angle(cosines.gather(1, own[:, None]), margin_degrees)  # (B, 1)
    logits = cosines.scatter(1, own[:, None], with_margin) / temperature  # (B, N)
    return F.cross_entropy(logits, own)


def nt_xent(anchors: Tensor, positives: Tensor, temperature: float = 0.05, offset: int = 0) -> Tensor:
    """Return the normalized temperature-scaled cross-entropy (ArcCSE, equation 1): `arccon` without a margin.

    Vectors of earlier batches (a queue), which follow the positives, are further negatives (ESimCSE, section 3.2).
    """
    return arccon(anchors, positives, margin_degrees=0.0, temperature=temperature, offset=offset)


def entailment_triplet(anchors: Tensor, closer: Tensor, farther: Tensor, margin: float = 0.0) -> Tensor:
    """Return the entailment triplet loss (ArcCSE, equation 4), the mean over the triplets.

    L_i = max(0, cos(h_i, h_i'') - cos(h_i, h_i') + m): the version masked more may not be nearer to the sentence
    than the version masked less.

    Args:
        anchors: (B, D) the sentences h. B may be 0: the loss is then 0.
        closer: (B, D) h', the versions masked less.
        farther: (B, D) h'', the versions masked more.
    """
    _check_shapes(anchors, closer, farther)
    if len(anchors) == 0:
        return anchors.sum() * 0.0  # keeps the graph, for processes that must run a backward pass all the same
    to_closer = F.cosine_similarity(anchors.float(), closer.float(), dim=-1)  # (B,)
    to_farther = F.cosine_similarity(anchors.float(), farther.float(), dim=-1)  # (B,)
    return (to_farther - to_closer + margin).clamp(min=0).mean()


def bidirectional_margin(
    anchors: Tensor, positives: Tensor, soft_negatives: Tensor, alpha: float = 0.1, beta: float = 0.3
) -> Tensor:
    """Return the bidirectional margin loss (SNCSE, equations 4 to 6), the mean over the sentences.

    Delta = cos(h, h#) - cos(h, h+); L = max(0, Delta + alpha) + max(0, -Delta - beta). It is 0 where the sentence's own
    negation is farther than its positive by alpha to beta.

    Args:
        anchors: (B, D) the sentences h. B may be 0: the loss is then 0.
        positives: (B, D) h+, the other view of each.
        soft_negatives: (B, D) h#, the negation of each.
        alpha, beta: Minimum and maximum difference of the cosines; a beta of 2 or more sets no bound.
    """
    _check_shapes(anchors, positives, soft_negatives)
    if alpha > beta:
        raise LikewiseError(f"alpha {alpha} is larger than beta {beta}: lower alpha, or raise beta")
    if len(anchors) == 0:
        return anchors.sum() * 0.0
    difference = _negation_difference(anchors, positives, soft_negatives)
    return ((difference + alpha).clamp(min=0) + (-difference - beta).clamp(min=0)).mean()


def outside_margins(
    anchors: Tensor, positives: Tensor, soft_negatives: Tensor, alpha: float = 0.1, beta: float = 0.3
) -> float:
    """Return the share of the B sentences whose difference is outside the folder [-beta, -alpha].

    The others have no gradient from `bidirectional_margin`, which takes the same arguments, with B above 0.
    """
    with torch.no_grad():
        difference = _negation_difference(anchors, positives, soft_negatives)
        return float(((difference > -alpha) | (difference < -beta)).float().mean())


def agreeing_opposites(
    sentences: Tensor, negations: Tensor, opposites: Tensor, opposite_negations: Tensor, temperature: float = 0.05
) -> Tensor:
    """Return the cross-entropy of the agreeing sentence among 'A', 'not A', 'B' and 'not B'.

    A and B are antonyms, so 'A' agrees with 'not B', and 'not A' with 'B'. Each of the four sentences is an anchor;
    chance is log 3. This loss is not part of SNCSE, whose soft negatives separate 'A' from 'not A' without a positive
    for 'not A'.

    Args:
        sentences, negations, opposites, opposite_negations: 'A', 'not A', 'B', 'not B', (Q, D) each. Q may be 0: the
            loss is then 0.
    """
    four = (sentences, negations, opposites, opposite_negations)
    _check_shapes(*four)
    if len(sentences) == 0:
        return sentences.sum() * 0.0
    vectors = F.normalize(torch.stack(four, dim=1).float(), dim=-1)  # (Q, 4, D)
    cosines = vectors @ vectors.transpose(1, 2) / temperature  # (Q, 4, 4)
    cosines = cosines.masked_fill(torch.eye(4, dtype=torch.bool, device=cosines.device), -torch.inf)
    agreeing = torch.tensor([3, 2, 1, 0], device=cosines.device).repeat(len(sentences))  # (4Q,)
    return F.cross_entropy(cosines.flatten(0, 1), agreeing)


def nt_xent_with_hard_negative(
    anchors: Tensor, positives: Tensor, hard_negatives: Tensor, rows: Tensor, temperature: float = 0.05, offset: int = 0
) -> Tensor:
    """Return NT-Xent with a hard negative for some of the anchors (SNCSE, equation 9), the mean over the anchors.

    Args:
        anchors: (B, D) one view of each sentence.
        positives: (N, D) the other view; row `offset + i` belongs to anchor i.
        hard_negatives: (K, D) the negations of K of the sentences.
        rows: (K,) the anchor that each of these belongs to.
    """
    if len(hard_negatives) != len(rows):
        raise LikewiseError(f"{len(hard_negatives)} hard negatives, but {len(rows)} row numbers")
    _check_temperature(temperature)
    cosines = cosine_matrix(anchors, positives)  # (B, N)
    own = _own(anchors, offset)
    # An anchor without a negation has nothing in the last column.
    last = torch.full((len(anchors),), -torch.inf, device=cosines.device)
    last = last.index_copy(0, rows, F.cosine_similarity(anchors[rows].float(), hard_negatives.float(), dim=-1))  # (B,)
    return F.cross_entropy(torch.cat([cosines, last[:, None]], dim=1) / temperature, own)


def grouped_cosine(predictions: Tensor, projections: Tensor, group_size: int = 16) -> Tensor:
    """Return the negative mean cosine of prediction and projection over groups (GCLSR, equation 6) and rows.

    Each row is cut into M = D / group_size groups; l = -mean over m of p_m . z_m / (|p_m| |z_m|). (The paper prints the
    norm of the product below the line; the text next to it says cosine.) No gradient flows into the projections.

    Args:
        predictions: (B, D) of one view.
        projections: (B, D) of the other view, detached here (stop-gradient).
        group_size: Number of features in a group; D gives the plain cosine.
    """
    _check_shapes(predictions, projections)
    if group_size < 1 or predictions.shape[1] % group_size:
        raise LikewiseError(f"groups of {group_size} do not divide {predictions.shape[1]} features")
    predicted = predictions.float().unflatten(1, (-1, group_size))  # (B, M, group_size)
    projected = projections.detach().float().unflatten(1, (-1, group_size))  # (B, M, group_size)
    return -F.cosine_similarity(predicted, projected, dim=2).mean()


def spread(vectors: Tensor) -> Tensor:
    """Return the spread of the normalized rows: (B, D) to a scalar, detached.

    The standard deviation over the rows of each number of x / |x|, times sqrt(D), root mean square over the numbers
    (Chen and He 2021, SimSiam, section 4.1): 1 where directions are even around the origin, 0 where all rows point one
    way.
    """
    rows = F.normalize(vectors.detach().float(), dim=1)
    return rows.var(dim=0, correction=0).sum().sqrt()


def _negation_difference(anchors: Tensor, positives: Tensor, soft_negatives: Tensor) -> Tensor:
    """Return Delta = cos(h, h#) - cos(h, h+) of SNCSE's equation 5: (B, D) each -> (B,)."""
    to_negation = F.cosine_similarity(anchors.float(), soft_negatives.float(), dim=-1)
    return to_negation - F.cosine_similarity(anchors.float(), positives.float(), dim=-1)


def _check_shapes(*matrices: Tensor) -> None:
    shapes = [tuple(matrix.shape) for matrix in matrices]
    if len(set(shapes)) > 1 or len(shapes[0]) != 2:
        raise LikewiseError(f"all matrices must have the same shape (B, D), but have {', '.join(map(str, shapes))}")


def _check_temperature(temperature: float) -> None:
    if temperature <= 0:
        raise LikewiseError(f"the temperature must be above 0, not {temperature}")


def _own(rows: Tensor, offset: int) -> Tensor:
    return torch.arange(len(rows), device=rows.device) + offset
