"""The commands; `memmodel.cli.app` names the file of each."""
