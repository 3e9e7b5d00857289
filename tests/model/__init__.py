"""The protocol as a small explicit-state search: every order of the AWS calls of a few actors, with a budget of faults.

`world` the values, `store` each AWS call, `flows` the flows call by call, `actors` who may begin what and what may go
wrong, `ends` what must hold at the end, `search` the search, `configurations` what is searched, `weakened` what must be
found. `python -m tests.model`.
"""
