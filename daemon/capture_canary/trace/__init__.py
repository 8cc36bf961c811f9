"""Read what the tracer wrote."""
