"""What a disturbed run may cost. No row may ever be lost or doubled."""

SEQUENCES = 4  # requests that one worker has at the server
MAX_WORKERS = 2
IN_FLIGHT = SEQUENCES * MAX_WORKERS

# Calls that one kill may repeat. Without a journal of calls a killed unit repeats all of its own:
# up to four questions or three pages for each of the documents in flight.
REPEATED_PER_KILL = IN_FLIGHT * 4
REPEATED_PER_CRASH_POINT = 40

# Whether a second attempt may end between its calls and its rows; verify compares attempts exactly.
SECOND_ATTEMPTS = False

# Whether shards are compacted, and what that replaces collected.
COMPACTS = False

# Whether a plain re-run asks again where the server did not answer. Without it such rows stay
# problems, and only rows and accounting are compared.
ASKS_AGAIN = False

# Whether storage that refuses ends a run in one line and exit code 4, not in a traceback.
STORAGE_IS_SUPERVISED = False

# How a run ends whose server is away for good, and the words that make it soon.
NO_SERVER = 1
SHORT_OUTAGE: tuple[str, ...] = ()
