"""What one turn costs beside other frameworks and a bare loop: `make bench`, or `python -m bench.turns --help`."""
