"""Evidence: audit reports as pandas tables, CSV files, a bundle, and its replay.

Import the modules: what needs pandas brings it in, ``audit``, ``environment`` and ``published``
do without.
"""
