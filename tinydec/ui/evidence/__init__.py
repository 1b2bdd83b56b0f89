"""The page of the evidence: the gate, the bundle, its tables and its manifest."""
