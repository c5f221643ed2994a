"""Sites with data of their own: messages, keys, what a site does, the coordinator."""
