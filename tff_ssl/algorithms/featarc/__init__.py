"""FeatARC: several models at the server, and aligned features."""
