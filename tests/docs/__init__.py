"""Tests of the programs that make figures and tables of docs/."""
