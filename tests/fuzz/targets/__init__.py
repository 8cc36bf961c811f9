"""One module for each kind of foreign input; each has the targets of its kind."""
