"""The command `agentkit`: run, talk to, draw and look after agents from a terminal. Needs the extra `cli`."""
