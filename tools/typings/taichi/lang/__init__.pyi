from typing import Any

impl: Any

def __getattr__(name: str) -> Any: ...
