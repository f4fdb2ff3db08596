"""The evaluation tasks, a family a file."""
