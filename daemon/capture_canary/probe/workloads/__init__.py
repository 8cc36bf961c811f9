"""What a probe's ranks run."""
