"""From words to the work to do: the checked config, its steps, phases and planned units."""
