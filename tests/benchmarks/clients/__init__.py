"""One agent loop per module, each with `make(base_url)`: see `worker.py`."""
