"""A Duetime on this machine: local AWS, deployed stack, steady URL. It deploys the system, and never imports it."""

from duetime.local.stack import LocalStack

__all__ = ["LocalStack"]
