"""The full reproduction by real vLLM: measured in a journal, shown, compared with other images."""
