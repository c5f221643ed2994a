"""Stateless, vectorised image augmentation seeded by (round seed, example id)."""
