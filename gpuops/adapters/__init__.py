"""Arrays of other libraries, none of which is imported before its first array."""
