"""All small programs: where two models differ, what one forbids at least, where a property fails.

`vocabulary` says which instructions there are, `sketches` which programs, `text` writes one as a litmus test. `judging`
judges all spellings of one sketch at once. `differences`, `synthesis` and `properties` ask; `work` runs many sketches.
"""
