"""Records of decisions: what differs from the record before, and how to read it again."""
