"""The functions of the stack, a room and a handler each.

A start makes a hundred thousand objects that stay. To look through them for garbage again and again, as Python does by
default, takes an eighth of the start of submit, so it is done more seldom, here and later.
"""

import gc

gc.set_threshold(20_000, 20, 20)
