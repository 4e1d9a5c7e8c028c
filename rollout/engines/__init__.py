"""One engine a file; each imports its heavy library only here."""
