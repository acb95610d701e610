"""GPUs: execution of works, the driver, memory and streams, compilation and its cache."""
