"""The subcommands of `capture-canary images`, a module each."""
