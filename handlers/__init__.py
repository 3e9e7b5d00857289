"""Your job functions live in this package, in any module of it; it never holds a part of the scheduler.

    from handlers import Run, handler

    @handler("reports.daily")
    def daily(payload, run: Run):
        ...
        return {"rows": 12}

docs/handlers.md tells the rest.
"""

from shared.targets.handler_api import Run, handler

__all__ = ["Run", "handler"]
