"""Verification: both paths held against each other, and faults that must be rejected."""
