"""Training, evaluation and the command line. The only package that may import the other two."""

import warnings

# TRL warns of a vLLM newer than it knows; its own vLLM modes are not used here.
warnings.filterwarnings("ignore", message="TRL currently supports vLLM")
