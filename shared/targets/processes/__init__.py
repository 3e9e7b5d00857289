"""The processes of Python handlers: one that loads them and forks one child an attempt. They never see the store."""
