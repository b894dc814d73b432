"""Information gains: learned, or by draws of the optimum."""
