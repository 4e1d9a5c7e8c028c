"""Training, evaluation and the command line. The only package that may import the other two."""
