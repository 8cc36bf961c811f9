"""May we probe now? Facts are collected, a pure function decides, every decision is explained."""
