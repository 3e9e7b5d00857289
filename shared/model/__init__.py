"""What Duetime speaks about: frozen values and the error tree. It imports only the standard library."""
