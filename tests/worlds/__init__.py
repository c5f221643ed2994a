"""Small data that several rooms of tests share."""
