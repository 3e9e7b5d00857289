"""How much a handler may say. Nothing else is here, so that it costs an executor's start nothing."""

MAX_RESULT_BYTES = 16 * 1024  # of UTF-8; a run's item has to stay small
MAX_PROGRESS_BYTES = 512  # of UTF-8
