"""Proxies and certificates that the environment names for requests over HTTP: where they cannot be
used, a line says which variable it is. Values of proxies, which may hold passwords, are not shown.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

from pipeline.core.errors import StartError

_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def proxies() -> dict[str, str]:
    """The proxies by the names of their variables, as they are spelled."""
    return {
        name: value
        for name, value in os.environ.items()
        if value and name.lower().endswith("_proxy") and name.lower() != "no_proxy"
    }


def through_proxy(url: str) -> str:
    """Words that name the variable whose proxy requests to a URL go through; "" if they go
    straight."""
    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or ""):
        return ""
    names = (f"{parts.scheme}_proxy", "all_proxy")
    spelled = (name for lower in names for name in (lower, lower.upper()))
    name = next((name for name in spelled if name in proxies()), None)
    return f" through the proxy that {name} names" if name else ""


@contextmanager
def environment_errors(address: str, invalid_url: type[Exception]) -> Iterator[None]:
    """Turn what is raised as a client of `address` is made into a StartError that names the
    variable; `invalid_url`: what its library raises for an address that is none."""
    try:
        yield
    except ImportError:
        socks = " and ".join(name for name, value in proxies().items() if "socks" in value.lower())
        raise StartError(
            f"{socks}: a SOCKS proxy, which requires a package; pip install socksio, or unset it"
        ) from None
    except OSError as error:
        name = next((name for name in _CERTIFICATES if os.environ.get(name)), _CERTIFICATES[0])
        raise StartError(
            f"{name}={os.environ.get(name, '')}: no certificates can be read from it "
            f"({error.strerror or error}); name a file that has some, or unset it"
        ) from None
    except (ValueError, invalid_url) as error:
        if not proxies():
            raise StartError(f"{address}: not an address ({error}); correct it") from None
        raise StartError(
            f"{' or '.join(proxies())}: not the address of a proxy; write http://HOST:PORT, or "
            "unset it"
        ) from None
