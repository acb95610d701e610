"""Arrays of other libraries; none of these is imported until an array of its shows up."""
