"""A translator, end to end: corpus, tokenizer, batches, loss, schedule, trainer, checkpoints, evaluation."""
