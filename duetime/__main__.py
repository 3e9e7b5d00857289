"""`python -m duetime`: the same as the command. It never does anything else."""

from duetime.cli import main

main()
