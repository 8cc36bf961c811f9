"""The subcommands of `capture-canary`: each adds its parser and runs; none holds logic of its own."""
