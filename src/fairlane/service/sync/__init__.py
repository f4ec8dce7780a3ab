"""Work that already is somewhere else: imported, kept in step, told back, taken back."""
