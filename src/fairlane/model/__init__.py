"""The nouns: frozen values that every other part speaks of. Imports nothing of ours."""
