"""All spellings of a shape judged at once: `judge`, with `frames` (events of all of them) and `slices` (evaluation);
`alike`: which shapes two models cannot tell apart."""
