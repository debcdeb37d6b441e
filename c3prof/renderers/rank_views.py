"""What the page about ranks shows."""

from c3prof.renderers.views import View

RANK_VIEWS: tuple[View, ...] = (
    View(
        "stragglers",
        "Ranks that others wait for",
        ("rank", "n_last", "n_collectives", "caused_wait_ns", "cause", "trend_ns_per_step"),
        bar="caused_wait_ns",
        limit=8,
    ),
    View(
        "waits_by_rank",
        "Who waits, and who is waited for",
        ("rank", "node", "n_collectives", "n_last", "wait_ns", "caused_wait_ns"),
        sort="caused_wait_ns",
        bar="caused_wait_ns",
        limit=16,
    ),
    View(
        "collectives_by_kind",
        "Communication by kind and group",
        (
            "collective",
            "group",
            "dimension",
            "group_size",
            "n_operations",
            "total_bytes",
            "wait_ns",
            "transfer_ns",
            "excess_ns",
            "busbw_gb_s",
        ),
        limit=12,
    ),
    View("exposed_causes", "Why communication is exposed", ("cause", "exposed_ns", "share", "ranks", "collective"), bar="exposed_ns"),
    View(
        "bandwidth_fit",
        "Latency and bandwidth",
        ("collective", "group", "link", "n", "alpha_ns", "bandwidth_gb_s", "bandwidth_low", "bandwidth_high", "bound", "note"),
        sort="n",
        limit=8,
    ),
    View(
        "bucket_plans",
        "Other gradient buckets",
        ("group", "plan", "n_buckets", "buckets", "tail_ns", "saved_ns", "measured_tail_ns"),
        limit=6,
    ),
    View(
        "process_groups",
        "Process groups",
        ("group", "group_desc", "dimension", "group_size", "link", "ranks_recorded", "operations", "unmatched"),
        sort="operations",
        limit=12,
    ),
    View("clocks", "Clocks", ("rank", "reference", "offset_ns", "drift_ppm", "bound_ns", "common_ends", "note"), limit=8),
)
"""In order; a table without rows is left out."""

RANK_TABLES = (*(view.table for view in RANK_VIEWS), "collectives", "stragglers_by_step")
"""The tables that `c3prof ranks` gives in a form for programs."""
