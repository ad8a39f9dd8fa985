"""cat statements → definitions: names, functions, procedures, choices."""
