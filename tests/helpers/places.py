"""The folders of the checkout, so that a test may be moved without counting its parents again."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
"""The checkout."""
