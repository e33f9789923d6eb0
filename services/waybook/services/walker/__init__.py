"""The walker: takes commands, runs steps, appends to STATE."""
