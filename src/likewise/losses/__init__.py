"""Losses: the tensor math in `functional`, and the class that encodes a batch for it in `encoder_loss`."""

from likewise.losses.encoder_loss import EncoderLoss

__all__ = ["EncoderLoss"]
