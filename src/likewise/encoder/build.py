"""Encoders built from a base: with its own or another pooling, an average of layers, or the mask of a prompt."""

import json
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer, WordWeights
from tokenizers import Regex, Tokenizer, normalizers
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedTokenizerFast

from likewise.encoder.location import LoadError, check_loadable
from likewise.encoder.modules import modes_restored, with_modules
from likewise.encoder.poolings import LAST_TEMPLATE, MASK, TEMPLATE, OwnOrMode, split_template
from likewise.encoder.saved_models import is_sentence_encoder, open_model, transformer_of
from likewise.encoder.settings import ModelSettings, train_adapters
from likewise.encoder.training_modules import TrainingHead, Truncation
from likewise.runs.whole_files import Record

"""Layer 1 is the first above the embeddings: so BERT-whitening's and SimCSE's codes count."""

FINAL_STOP: Record = {"type": "Replace", "pattern": {"Regex": r"""(?<=[^\s.?!"'])\s*\z"""}, "content": " ."}
"""The normaliser, as it is saved, that ends a text without a final stop with ' .', as PromptBERT's code does."""

_DROPOUTS = ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout")


def open_base(base: str, dropout: float | None = None) -> tuple[Transformer, ModelSettings]:
    """Load the Transformer module of a base, and read the other settings of the base.

    Args:
        dropout: Dropout rate of hidden states and attention; None uses the base's rates.
    """
    model = open_model(SentenceTransformer, check_loadable(base)).float()
    transformer = transformer_of(model, base)
    settings = ModelSettings.of(model) if is_sentence_encoder(base) else ModelSettings()
    # The chat template of an instruct model would otherwise be wrapped around every text.
    transformer.modality_config = {"text": transformer.modality_config["text"]}
    set_dropout(transformer, dropout)
    train_adapters(transformer)
    return transformer, settings


def build_encoder(
    base: str, pooling: OwnOrMode = "cls", head: bool = True, dropout: float | None = None
) -> SentenceTransformer:
    """Return a trainable encoder: the base's transformer, a pooling, and optionally the training head.

    The encoder preserves the base's prompts, similarity and truncated dimension, and normalizes its vectors if the base
    does.

    Args:
        pooling: Pooling of token vectors (B, T, D) into a sentence vector (B, D). "own" preserves the modules of a
            sentence encoder; for other bases, it is "cls", or the last token of a prompt if the base is causal, see
            `build_prompt_encoder`. The other values only use the base's transformer.
        head: Whether to add the MLP head of contrastive training (see `TrainingHead`).
    """
    if pooling == "own" and is_sentence_encoder(base):
        model = open_model(SentenceTransformer, check_loadable(base)).float().train()
        set_dropout(transformer_of(model, base), dropout)
        train_adapters(model)
        for module in model:
            if isinstance(module, WordWeights):  # a choice of tokens, such as a prompt's mask
                module.requires_grad_(False)
        return for_training(model, head).train()
    transformer, settings = open_base(base, dropout)
    causal = pooling in ("own", "cls") and reads_left_to_right(transformer)
    if causal and pooling == "cls":
        raise LoadError(f"--base {base} is causal: its first token cannot see the other tokens; use --pooling own")
    if causal:
        return _read_at_prompt(base, transformer, settings, LAST_TEMPLATE, head)
    mode = "cls" if pooling == "own" else pooling
    pooled = Pooling(transformer.get_embedding_dimension(), mode, include_prompt=settings.include_prompt)
    return _carrying(settings, [transformer, pooled], head)


def for_training(model: SentenceTransformer, head: bool = False) -> SentenceTransformer:
    """Return an encoder with the modules that training adds: the truncation to its dimension, and the head."""
    width = model.get_embedding_dimension()  # of the truncated vector
    extra: list[torch.nn.Module] = [Truncation(model.truncate_dim)] if model.truncate_dim else []
    if head and width:
        extra.append(TrainingHead(width))
    if not extra:
        return model
    modules = list(model.children())
    # Before a last normalisation: the head's tanh is linear on vectors of length 1, and teaches less.
    place = len(modules) - isinstance(modules[-1], Normalize)
    return with_modules(model, [*modules[:place], *extra, *modules[place:]])


def reads_left_to_right(transformer: Transformer) -> bool:
    """Return whether the first token's vector is the same whatever follows: the transformer is a causal one."""
    tokenizer: Any = transformer.tokenizer
    special = set(tokenizer.all_special_ids)
    first, second, other = [token for token in range(len(special) + 3) if token not in special][:3]
    ids = torch.tensor([[first, second], [first, other]], device=next(transformer.parameters()).device)
    with modes_restored(transformer), torch.no_grad():
        transformer.eval()
        states = transformer({"input_ids": ids, "attention_mask": torch.ones_like(ids)})["token_embeddings"]
    return bool(torch.allclose(states[0, 0], states[1, 0], rtol=1e-5, atol=1e-6))  # rows of a batch may round apart


def set_dropout(transformer: Transformer, probability: float | None) -> None:
    """Set the probability of every dropout of a transformer, including attention; None changes nothing.

    The saved configuration keeps the base's rates, for the next training.
    """
    if probability is None:
        return
    for module in transformer.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = probability
        for name in _DROPOUTS:  # kept as a number by attention that calls torch's own, as in Llama
            if isinstance(getattr(module, name, None), int | float):
                setattr(module, name, probability)


def prompt_tokenizer(tokenizer: Any, template: str, final_stop: bool = False) -> PreTrainedTokenizerFast:
    """Return a copy of a tokenizer that inserts every text into the prompt of a template.

    A mask token (or any special token) in a text is read as plain characters and changes nothing.

    Args:
        tokenizer: Tokenizer of transformers, which can already have a prompt.
        template: See `build_prompt_encoder`.
        final_stop: Whether to append ' .' to a text without a final full stop; a tokenizer that already does so
            continues to do so.
    """
    if not getattr(tokenizer, "is_fast", False):
        raise LoadError("a prompt needs a fast tokenizer, which this base does not have: use another base")
    if MASK in template and tokenizer.mask_token is None:
        raise LoadError(
            f"the base has no mask token for the template {template!r}: use a masked language model, such as "
            f"bundled:minilm or bundled:mpnet, or a template without [MASK] for a causal base, such as "
            f"{LAST_TEMPLATE!r}"
        )

    # A copy: the base's own tokenizer must not change.
    state = json.loads(tokenizer.backend_tokenizer.to_str())
    normalizers_before = (state["normalizer"] or {}).get("normalizers", [])
    if FINAL_STOP in normalizers_before:  # the prompt itself gets no stop
        final_stop = True
        normalizers_before.remove(FINAL_STOP)
    backend = Tokenizer.from_str(json.dumps(state))
    backend.no_truncation()
    backend.no_padding()
    if getattr(tokenizer, "split_special_tokens", False) and isinstance(backend.pre_tokenizer, ByteLevel):
        backend.pre_tokenizer = ByteLevel(add_prefix_space=False)  # the base has a prompt: undo what is set below
    parts = _parts_of_prompt(tokenizer, backend, template)
    if split_template(template)[0].endswith(" ") and isinstance(backend.pre_tokenizer, ByteLevel):
        backend.pre_tokenizer = ByteLevel(add_prefix_space=True)
    order = [name for name in ("<lead>", "<before>", "$A", "<after>", "<trail>") if name == "$A" or parts[name]]
    backend.post_processor = TemplateProcessing(
        single=" ".join(f"{name}:0" for name in order),
        special_tokens=[
            {"id": name, "ids": numbers, "tokens": tokenizer.convert_ids_to_tokens(numbers)}
            for name, numbers in parts.items()
            if numbers
        ],
    )
    if final_stop:
        stop = normalizers.Replace(Regex(FINAL_STOP["pattern"]["Regex"]), FINAL_STOP["content"])
        backend.normalizer = normalizers.Sequence([*([backend.normalizer] if backend.normalizer else []), stop])
    named = ("bos_token", "eos_token", "cls_token", "sep_token", "pad_token", "unk_token", "mask_token")
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        split_special_tokens=True,
        model_max_length=tokenizer.model_max_length,
        padding_side=tokenizer.padding_side,
        model_input_names=tokenizer.model_input_names,
        **{name: token for name in named if (token := getattr(tokenizer, name)) is not None},
    )


def reads_a_mask(base: str) -> bool:
    """Return whether a base is a mask-prompt encoder, which weights all tokens except one by 0."""
    return any(kind.endswith("WordWeights") for kind in check_loadable(base).modules)


def has_own_vector(base: str) -> bool:
    """Return whether a base has a sentence vector that its mask can learn: a pretrained language model has none."""
    return is_sentence_encoder(base) and not reads_a_mask(base)


def build_prompt_encoder(
    base: str, template: str = TEMPLATE, head: bool = True, dropout: float | None = None, final_stop: bool = False
) -> SentenceTransformer:
    """Return a trainable encoder whose sentence vector is a hidden state of a prompt, in stock modules.

    The hidden state is the state at the template's mask (SNCSE, equation 1, and earlier PromptBERT), or, for a causal
    base and a template without a mask, the state at its last token (PromptEOL). The prompt is part of the tokenizer's
    template, so truncation accounts for it and never removes the mask or the end. With word weights of 1 for the mask
    token and 0 for all other tokens, mean pooling returns exactly the mask's vector. The saved folder loads in plain
    sentence-transformers, and `encode` needs no prompt. The base's settings are preserved, as in `build_encoder`.

    Args:
        base: Path, name on the model hub, or `bundled:NAME`.
        template: Text with one X, which represents the sentence, and at most one [MASK], which represents the base's
            mask token. The default for a base without a mask token is `LAST_TEMPLATE`.
        head: Whether to add the MLP head of contrastive training.
        dropout: Dropout rate of hidden states and attention; None uses the base's rates.
        final_stop: Whether to append ' .' to a text without a final full stop, in training and in the saved model.

    Raises:
        LoadError: If the base has no such token, or its maximum length is shorter than the template.
    """
    transformer, settings = open_base(base, dropout)
    if template == TEMPLATE and getattr(transformer.tokenizer, "mask_token", None) is None:
        template = LAST_TEMPLATE
    if MASK not in template and not reads_left_to_right(transformer):
        raise LoadError(
            f"--base {base} is not causal, so the last token of a prompt does not represent the whole text: give "
            f"a template with {MASK}"
        )
    return _read_at_prompt(base, transformer, settings, template, head, final_stop)


def _read_at_prompt(
    base: str, transformer: Transformer, settings: ModelSettings, template: str, head: bool, final_stop: bool = False
) -> SentenceTransformer:
    tokenizer: Any = prompt_tokenizer(transformer.tokenizer, template, final_stop)
    longest, taken = tokenizer.model_max_length, len(tokenizer("")["input_ids"])
    if taken >= longest:
        raise LoadError(f"--base {base}: it reads {longest} tokens, but the template alone has {taken}")
    transformer.processor = tokenizer
    width = transformer.get_embedding_dimension()
    if MASK not in template:
        return _carrying(settings, [transformer, Pooling(width, pooling_mode="lasttoken")], head)
    vocabulary = list(tokenizer.convert_ids_to_tokens(list(range(len(tokenizer)))))
    # A choice of tokens: there is nothing to learn, and the mean is that of the mask alone.
    weights = WordWeights(vocabulary, {str(tokenizer.mask_token): 1.0}, unknown_word_weight=0.0).requires_grad_(False)
    return _carrying(settings, [transformer, weights, Pooling(width, pooling_mode="mean")], head)


def _carrying(settings: ModelSettings, modules: list[torch.nn.Module], head: bool) -> SentenceTransformer:
    return for_training(settings.carried_by([*modules, *([Normalize()] if settings.normalizes else [])]), head)


def _parts_of_prompt(tokenizer: Any, backend: Tokenizer, template: str) -> dict[str, list[int]]:
    """Return the token numbers around a text: the marks of the base, and the template's own on either side."""
    before, after = split_template(template)

    def pieces(text: str) -> list[int]:
        # Of the copy: where the base has a prompt already, its own tokenizer reads a mask token as plain characters.
        text = text.replace(MASK, tokenizer.mask_token or MASK)
        ids: list[int] = backend.encode(text, add_special_tokens=False).ids
        return ids

    whole = tokenizer("a", return_special_tokens_mask=True)
    ids, special = whole["input_ids"], whole["special_tokens_mask"]
    # Of a prompt that the base has already, only the marks of start and end stay.
    marks = set(tokenizer.all_special_ids) - {tokenizer.mask_token_id, tokenizer.unk_token_id}
    trail = [token for token in ids[len(ids) - special[::-1].index(0) :] if token in marks]
    return {
        "<lead>": [token for token in ids[: special.index(0)] if token in marks],
        # The blank before the sentence belongs to the sentence's first word.
        "<before>": pieces(before.rstrip()),
        "<after>": pieces(after),
        "<trail>": trail if MASK in template else [],  # without a mask, the prompt's own last token is read
    }
