"""The command `agentkit`: one module per command, imported when it is called. Needs the extra `cli`."""
