"""What a profile of msprof or torch-npu says of H2D copies, for who has one and no tracer."""
