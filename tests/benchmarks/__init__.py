"""What the package costs beside a bare loop: see README.md. Run with `python -m tests.benchmarks`."""
