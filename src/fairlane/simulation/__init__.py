"""Virtual time: the real engine over a world that is drawn, recorded or scripted."""
