"""Reports: status, lists, summary, stats and events as documents."""
