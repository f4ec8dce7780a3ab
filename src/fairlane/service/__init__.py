"""The operator's commands, one function each; every interface calls them."""
