"""The translator: answers, alignments, evaluation, and the commands around it."""
