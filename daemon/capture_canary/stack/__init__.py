"""What runs here: CANN, driver, SoC and their versions."""
