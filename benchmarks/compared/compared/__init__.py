"""Systems of other papers to compare with: recipes and scorers that likewise finds by entry points, and baselines.

`pip install benchmarks/compared` brings them: `likewise train consert` and `likewise evaluate bertscore:MODEL` then
know their names, and `compared.baselines.baseline("whitening", ...)` makes a baseline. Nothing in likewise imports
this package.
"""
