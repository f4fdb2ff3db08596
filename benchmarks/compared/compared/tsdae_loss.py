"""The loss of TSDAE: sentence-transformers' own, with its decoder in the checkpoints."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

from sentence_transformers.sentence_transformer.losses import DenoisingAutoEncoderLoss
from torch import Tensor
from transformers import AutoModelForCausalLM
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

from likewise.encoder.location import LoadError
from likewise.encoder.modules import TrainingOnly
from likewise.errors import first_line
from likewise.runs import processes
from likewise.transformers_output import only_errors


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


class DenoisingLoss(DenoisingAutoEncoderLoss):
    """The mean over the tokens of all processes; the decoder becomes a module of the encoder, for its checkpoints."""

    def __init__(self, encoder: Any) -> None:
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
        self.decoder.float()  # the encoder is: a base that is saved in 16 bits is trained in 32
        encoder.append(TrainingDecoder(self.decoder))

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], *args: Any, **kwargs: Any) -> Tensor:
        """Return the loss of a batch, a scalar."""
        noisy, sentences = sentence_features
        tokens = int((sentences["input_ids"][:, 1:] != self.tokenizer_decoder.pad_token_id).sum())
        found: Tensor = super().forward([noisy, sentences], *args, **kwargs) * processes.share(tokens)
        return found
