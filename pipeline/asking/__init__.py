"""From a prompt to a recorded, parsed reply: slots, deadlines, the journal of calls, shared
replies."""
