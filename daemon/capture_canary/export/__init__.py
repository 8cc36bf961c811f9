"""What others read: metrics and pages."""
