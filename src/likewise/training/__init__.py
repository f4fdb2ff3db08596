"""The training run: batching, checkpoint and resume, provenance. The only room that builds a trainer."""
