"""The tests, laid out as daemon/capture_canary is."""
