"""One run: training, evaluation, and what is left in its folder."""
