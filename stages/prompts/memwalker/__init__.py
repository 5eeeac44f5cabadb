"""The prompts of MemWalker (sections 3 and A.1), and of the recurrence it is compared with."""
