"""What serving containers print about their captures: followed, read, and at most a suspicion."""
