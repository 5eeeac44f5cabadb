"""Stages that score answers by metrics and evidence recall, without a model. The measures of
rankings are SQL, in stages/tables/lookups.sql."""
