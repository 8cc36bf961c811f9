"""From records to growth to verdict; no I/O."""
