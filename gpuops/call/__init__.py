"""What a call is: its key, its arguments by name, what the launch cache has ready for it."""
