"""The local AWS: ministack, driven. It runs by path, in an environment of its own, and never imports the product."""
