"""Where a submission runs: a fresh process for each, shut in as well as this machine can."""
