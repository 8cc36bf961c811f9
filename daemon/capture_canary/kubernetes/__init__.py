"""What is said to Kubernetes, by a process of its own: the daemon speaks with it through files alone."""
