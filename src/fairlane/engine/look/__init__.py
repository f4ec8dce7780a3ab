"""Look: what planning reads from a store, kept from round to round and brought up to date."""
