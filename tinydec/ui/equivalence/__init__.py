"""The page of the equivalence: its compute, its controls and its four views."""
