"""Views: what a window can show; each gives its parts as markup, by their ids."""
