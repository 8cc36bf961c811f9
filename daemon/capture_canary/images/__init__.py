"""Images: one for each CANN that a cluster may run, built, verified, compared."""
