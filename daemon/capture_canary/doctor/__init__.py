"""What this node really runs, on one screen; and whether what is believed about CANN holds here."""
