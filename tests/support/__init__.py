"""What the tests stand on: AWS stand-ins, clocks, hooks on every request. It never holds a test."""
