"""What carries messages between mailboxes, in environments of its own."""
