"""Client: the operations of a server elsewhere, asked over HTTP with the standard library alone."""
