"""`tff.aggregators` factories that combine what leaves the clients."""
