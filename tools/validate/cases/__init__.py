"""One case a file. A file holds one or more :class:`~validate.case.Case` objects at module level; they are found."""
