"""The API under /api/v1: the same as the pages, for programs."""
