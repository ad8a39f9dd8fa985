"""What an edit of a model changes: the shipped tests under both models, their variants, and the smallest programs that
tell the two apart.
"""
