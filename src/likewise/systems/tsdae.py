"""TSDAE: a decoder reconstructs a sentence from the vector of its noisy version.

Wang, Reimers, Gurevych 2021, "TSDAE: Using Transformer-based Sequential Denoising Auto-Encoder for Unsupervised
Sentence Embedding Learning"; the loss is sentence-transformers' own.
"""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, Self

from sentence_transformers.sentence_transformer.losses import DenoisingAutoEncoderLoss
from torch import Tensor
from transformers import AutoModelForCausalLM
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

from likewise.augment.spans import sentence_rng
from likewise.augment.word_edits import delete_words
from likewise.encoder.build import PoolingMode, build_encoder
from likewise.encoder.location import LoadError
from likewise.encoder.modules import TrainingOnly
from likewise.errors import first_line
from likewise.recipes.options import SharpOptions
from likewise.recipes.recipe import Reading, Recipe, TextCollator
from likewise.runs import processes
from likewise.runs.options import option
from likewise.transformers_output import only_errors


class TSDAEOptions(SharpOptions):
    """The options of TSDAE."""

    pooling: PoolingMode = option("cls", "Pooling: which token vectors make the sentence vector.")
    deletion: float = option(0.6, "Probability that an input word is deleted.", ge=0, le=1)


class TrainingDecoder(TrainingOnly):
    """The language model that the loss of a denoising auto-encoder decodes with.

    Args:
        decoder: a causal language model of transformers, its weights tied to the encoder's or not.
    """

    def __init__(self, decoder: Any) -> None:
        super().__init__()
        self.decoder = decoder

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Write the decoder as transformers does."""
        self.decoder.save_pretrained(output_path)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", *args: Any, **kwargs: Any) -> Self:
        """Load the module from a checkpoint's folder."""
        return cls(AutoModelForCausalLM.from_pretrained(str(Path(model_name_or_path) / subfolder)))


def noisy_views(rows: list[dict[str, Any]], deletion: float, seed: int) -> dict[str, list[str]]:
    """Return {'noisy': the sentences with words deleted, 'sentence'}; a deletion is fixed by sentence and seed."""
    sentences = [row["sentence"] for row in rows]
    noisy = [delete_words(text, deletion, sentence_rng(text, seed)) for text in sentences]
    return {"noisy": noisy, "sentence": sentences}


class DenoisingLoss(DenoisingAutoEncoderLoss):
    """The mean over the tokens of all processes; the decoder becomes a module of the encoder, for its checkpoints."""

    def __init__(self, encoder: Any, options: TSDAEOptions) -> None:
        config = encoder[0].auto_model.config
        if type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING:
            raise LoadError(
                f"TSDAE decodes with the base's own weights, and transformers has no decoder of the kind "
                f"{config.model_type}: take a BERT- or RoBERTa-like base, such as bundled:minilm"
            )
        try:
            with only_errors():  # a base has no weights for what a decoder adds: they start at random
                super().__init__(encoder, tie_encoder_decoder=True)
        except (OSError, ValueError) as error:
            raise LoadError(
                f"TSDAE decodes with the base's own weights, and {config._name_or_path} cannot be a decoder "
                f"({first_line(error)}): take a BERT- or RoBERTa-like base, by its name or the folder that holds "
                "its config.json"
            ) from error
        encoder.append(TrainingDecoder(self.decoder))

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], *args: Any, **kwargs: Any) -> Tensor:
        """Return the loss of a batch, a scalar."""
        noisy, sentences = sentence_features
        tokens = int((sentences["input_ids"][:, 1:] != self.tokenizer_decoder.pad_token_id).sum())
        found: Tensor = super().forward([noisy, sentences], *args, **kwargs) * processes.share(tokens)
        return found


PAPER = TSDAEOptions(batch_size=8, schedule="constant", sam_rho=0.0, length_batches=False)

TSDAE = Recipe(
    name="tsdae",
    summary="A denoising auto-encoder: words are deleted, and a decoder restores the sentence from its vector.",
    source="Wang et al. 2021, TSDAE",
    presets={"cpu": PAPER.updated(batch_size=16, max_length=32, eval_steps=50, length_batches=True), "paper": PAPER},
    build_encoder=lambda base, options: build_encoder(base, pooling=options.pooling, head=False),
    build_collator=lambda encoder, options, seed: TextCollator(
        partial(noisy_views, deletion=options.deletion, seed=seed), Reading.of(encoder, options.max_length)
    ),
    build_loss=DenoisingLoss,
    modules=(TrainingDecoder,),
)
