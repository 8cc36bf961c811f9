"""Feeds what reads foreign bytes with anything (docs/fuzzing.md): `python -m tests.fuzz`."""
