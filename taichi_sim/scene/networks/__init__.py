"""Kinds of mass-spring networks, one file each."""
