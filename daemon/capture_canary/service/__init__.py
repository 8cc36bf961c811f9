"""The daemon: one loop that probes when due, looks at traces and logs, remembers, and keeps what is exported."""
