"""Pictures and lists broken in the ways in which people's are broken."""
