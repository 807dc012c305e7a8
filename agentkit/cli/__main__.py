"""`python -m agentkit.cli`: the command `agentkit`."""

from agentkit.cli import main

main()
