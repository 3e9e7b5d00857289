"""What users install: client, command line, local runtime. It talks HTTP and never imports the system."""
