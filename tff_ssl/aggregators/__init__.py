"""How what leaves the clients is combined: `tff.aggregators` factories."""
