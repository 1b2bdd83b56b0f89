"""The fault lab: 42 faults as data, the recorder that runs them, and the kill matrix."""
