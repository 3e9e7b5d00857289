"""The only place that builds things: one module a function, each built once per cold start, and what they share."""
