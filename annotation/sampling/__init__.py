"""Which pairs people see: the sample, controls and repeats, and the queues that they stand in."""
