"""Encoders, projectors and heads as pure functions of a flat `Params` mapping."""
