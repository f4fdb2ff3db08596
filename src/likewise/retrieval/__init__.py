"""The math of a search, over texts in memory: words in common, the fusion of scores, and the pipeline's weights."""
