"""The page of memory and cost: its compute, its views and its exercises."""
