"""Code blocks of the README and CONTRIBUTING, found by their language."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def blocks(document: str, *languages: str) -> list[str]:
    """Contents of the fenced blocks of ``document`` (in the root folder) in any of ``languages``, in order."""
    text = (ROOT / document).read_text(encoding="utf-8")
    found = re.findall(r"^```(\w+)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return [content for language, content in found if language in languages]
