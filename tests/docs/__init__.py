"""Tests of the documentation: what its site is made of, and the code of its pages."""
