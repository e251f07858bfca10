"""What pytest leaves alone here: programs that load Triton, which `test_triton` starts in processes of their own."""

collect_ignore = ["compiled_triton.py", "interpreted_triton.py"]
