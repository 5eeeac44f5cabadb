"""Numbers as a plan prints them: three digits and a size."""


def span(low: float, high: float) -> str:
    return short(low) if short(low) == short(high) else f"{short(low)}-{short(high)}"


def short(number: float) -> str:
    """Three digits: 940, 1.25k, 12.5M."""
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= 0.9995 * size:
            scaled = number / size
            digits = max(0, 3 - len(str(int(scaled + 1e-9))))
            return f"{scaled:.{digits}f}{sign}"
    return f"{number:.0f}"
