"""Open sockets, proxies and TLS: what the requests of a run share."""

from __future__ import annotations

import functools
import os
import ssl
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import httpx


class Connection:
    """What the requests of a run share: open sockets, one TLS context, and the history encoded so far.

    Made for nothing: the client comes with the first request, TLS with the first https one. Belongs to one event
    loop; `aclose` it at the end.

    Args:
        transport: Instead of the network, for tests: an `httpx.AsyncBaseTransport`.
    """

    __slots__ = ("_transport", "_ways", "encoded")

    def __init__(self, transport: httpx.AsyncBaseTransport | None = None) -> None:
        self._transport = transport
        self._ways: dict[str, httpx.AsyncBaseTransport | httpx.AsyncClient] = {}
        self.encoded: dict[Any, Any] = {}  # adapters keep encoded transcripts here (`handover.EncodedHistory`)

    async def send(self, request: httpx.Request) -> httpx.Response:
        """Send `request`; the body of the response is still to be read, and to be closed.

        Proxies and custom CAs come from the usual environment variables. Redirects are not followed.
        """
        import httpx

        scheme = request.url.scheme
        way = self._ways.get(scheme)
        if way is None:
            way = self._ways[scheme] = self._way(scheme == "http")
        if isinstance(way, httpx.AsyncClient):
            return await way.send(request, stream=True)
        return await way.handle_async_request(request)

    def _way(self, is_plain: bool) -> httpx.AsyncBaseTransport | httpx.AsyncClient:
        """A client, which costs a tenth of a turn, only where it has something to add: it knows which proxy to use."""
        from urllib.request import getproxies

        import httpx

        proxies = getproxies()
        # httpx loads the CA store for plain http as well, which takes longer than a whole request.
        needs_tls = not is_plain or any(proxy.startswith("https:") for proxy in proxies.values())
        verify = tls_context() if needs_tls else _no_tls_context()
        if proxies:
            return httpx.AsyncClient(verify=verify, transport=self._transport)
        return self._transport or httpx.AsyncHTTPTransport(verify=verify)

    async def aclose(self) -> None:
        """Close all sockets. The connection can be used again: it starts anew."""
        ways, self._ways = list(self._ways.values()), {}
        self.encoded.clear()
        for way in ways:
            await way.aclose()


_CA_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def tls_context() -> ssl.SSLContext:
    """Whom to trust: the usual authorities, or those that the environment names. Made once."""
    return _tls_context(*map(os.environ.get, _CA_VARIABLES))


@functools.lru_cache(maxsize=4)
def _tls_context(*_environment: str | None) -> ssl.SSLContext:
    import httpx

    return httpx.create_ssl_context()


@functools.lru_cache(maxsize=1)
def _no_tls_context() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts nobody
