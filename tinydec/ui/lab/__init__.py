"""Batches, the audit and the fault lab: what their pages compute, say and ask."""
