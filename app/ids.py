"""Ids of the components that callbacks and assets refer to, each once."""

LOCATION = "location"
PAGE = "page"
NAVIGATION = "navigation"
POLL = "poll"
STATUS = "status"

TIMELINE = "timeline"
"""The element that assets/timeline.js fills."""

SLOWDOWN_GRID = "slowdown-grid"
SLOWDOWN_SAMPLES = "slowdown-samples"
RANKS_MEASURE = "ranks-measure"
RANKS_MAP = "ranks-map"
TABLE_CHOICE = "table-choice"
TABLE_GRID = "table-grid"
THEME = "theme"
"""The button that switches between light and dark (assets/theme.js)."""
