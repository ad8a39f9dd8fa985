"""Changes to a kernel after which its findings are gone."""
