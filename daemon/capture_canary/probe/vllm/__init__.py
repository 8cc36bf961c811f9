"""The workload of vLLM with vllm-ascend: a tiny model's graphs, captured again and again by vLLM's own code."""
