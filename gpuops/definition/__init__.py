"""What ops compute: typed expressions, and reductions as records of them. Every engine runs these."""
