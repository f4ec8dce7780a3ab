"""The verbs of operators, one function each; every interface calls them."""

#: Stands at the head of every document.
SCHEMA = "fairlane/1"
