"""Answer to metrics and evidence recall; calls no model. The measures of rankings are SQL, in
stages/tables/lookups.sql."""
