"""Training, as chapter 8 teaches it: batches, loss, optimisers, schedule, precision, processes, the trainer."""
