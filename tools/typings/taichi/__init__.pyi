"""For the type checker Taichi is Any: inside a kernel Python means something else, and its own annotations are
wrong in places."""

from typing import Any

def __getattr__(name: str) -> Any: ...
