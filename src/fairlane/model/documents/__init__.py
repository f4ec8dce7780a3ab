"""Documents: the types of the JSON that every interface answers with, one module a subject.

`XAnswer` is the answer of an operation, `XDocument` a part of one. A key that is not
`NotRequired` is always there. `service.operations.schemas` derives the JSON Schemas from them.
"""
