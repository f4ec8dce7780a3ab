"""The files of trackers, as their own programs read and write them."""
