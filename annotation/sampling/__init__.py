"""The pairs that people see: the sample, controls and repeats, and the queues that they stand in."""
