"""The schedulers whose files can be read: one module each, with `convert(path) -> Converted`."""
