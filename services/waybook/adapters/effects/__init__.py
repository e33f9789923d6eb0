"""Other sides of side effects: files, objects, HTTP services, mail servers."""
