"""For authors of plug-ins: the suites that every adapter of a seam must pass, and builders."""
