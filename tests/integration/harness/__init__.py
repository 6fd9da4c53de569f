"""What the integration tests drive framelane with: the real program against real peers."""
