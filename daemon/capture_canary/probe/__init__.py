"""Measure: a parent that supervises, a child that captures."""
