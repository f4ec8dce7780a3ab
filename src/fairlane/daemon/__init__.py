"""The loop: everything below performed. `cycle` is the page that tells the story."""
