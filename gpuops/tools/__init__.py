"""What stands around the ops: info, demo, warm-up."""
