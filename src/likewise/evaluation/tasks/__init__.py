"""The evaluation tasks, one module per family."""
