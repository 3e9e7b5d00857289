"""Logs, metrics and traces, through Powertools. It is set up by the POWERTOOLS_* variables and decides nothing."""

from aws_lambda_powertools import Logger, Metrics, Tracer

logger = Logger()
metrics = Metrics()
tracer = Tracer(auto_patch=False)
