"""What a disturbed run may cost. No row may ever be lost or doubled."""

SEQUENCES = 4  # requests that one worker has at the server
MAX_WORKERS = 2
IN_FLIGHT = SEQUENCES * MAX_WORKERS

# Calls that one kill may repeat: those in flight.
REPEATED_PER_KILL = IN_FLIGHT
# Two workers that compete for the same units ask all of them twice.
REPEATED_BY_TWO_WORKERS = 40
