"""What single lessons say and ask: pure functions that make HTML, cards and exercises."""
