"""Takes mails in: publishes the commands that start their runs, and collects the walkers' answers."""
