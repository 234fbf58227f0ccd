"""Constitutive laws, one a file; every module here is imported when the registry is first asked."""
