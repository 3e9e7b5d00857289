"""What Duetime speaks about: frozen values and the error tree. It never does anything and imports only the standard library."""
