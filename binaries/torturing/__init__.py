"""What is done to programs to see whether they lose anything, and what they say."""
