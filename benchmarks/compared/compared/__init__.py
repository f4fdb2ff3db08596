"""Systems of other papers to compare with, as recipes and baselines that likewise finds by entry points.

`pip install benchmarks/compared` brings them: `likewise train consert`, `likewise baseline whitening` and the rows of
`likewise compare` then know their names. Nothing in likewise imports this package, and it uses nothing that a package
of your own could not use.
"""
