"""Logs and metrics, through Powertools. It is set up by the POWERTOOLS_* variables and decides nothing.

Traces are Lambda's own: see docs/decisions/0006-no-x-ray-sdk.md.
"""

from aws_lambda_powertools import Logger, Metrics

logger = Logger()
metrics = Metrics()
