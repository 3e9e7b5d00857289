"""What a run calls, one module a kind. It never decides whether or when, and never touches the store."""
