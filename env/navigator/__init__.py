"""The long-context navigator: answer a multi-hop question under a hard ceiling on what is held."""
