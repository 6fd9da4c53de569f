"""Tools of the integration tests, which run the real program against real peers."""
