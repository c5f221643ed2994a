"""Data sets by name: images, labels, example ids and cases, split once and for all."""
