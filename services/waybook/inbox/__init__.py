"""The built-in agent: a mail walks five steps to a reply that a person, or every gate, lets go."""
