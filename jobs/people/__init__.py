"""`gistmill rate sheet|import|agreement`: people label answers, and are compared with raters."""
