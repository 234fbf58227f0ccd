"""Signed distances of shapes inside kernels, with their derivatives: what rigid contact and coupling both ask for."""
