"""The review: every exercise of the app in one list, further ones, and the glossary."""
