"""`fairlane serve`: the HTTP API and the page, without a daemon."""

from __future__ import annotations

import os
import signal
import sys
import threading

import click

from fairlane.cli.options import Call, common, pass_call
from fairlane.cli.output import print_json, write
from fairlane.model.errors import Invalid


@click.command("serve")
@click.option("--host", metavar="ADDRESS", help="Where to listen (server.host, 127.0.0.1).")
@click.option("--port", type=click.IntRange(0, 65535), metavar="N", help="0: any that is free.")
@click.option("--name", "names", multiple=True, metavar="NAME", help="Also asked by this name.")
@click.option("--no-page", is_flag=True, help="Only the API, MCP and metrics.")
@click.option("--tls-cert", type=click.Path(exists=True), metavar="FILE", help="For HTTPS.")
@click.option("--tls-key", type=click.Path(exists=True), metavar="FILE", help="Its key.")
@click.option("--allow-plain-http", is_flag=True, help="Even where others can listen.")
@click.option("--open", "opens", is_flag=True, help="Open the page in the browser.")
@click.option("--until-eof", is_flag=True, hidden=True, help="End with standard input.")
@common
@pass_call
def command(
    call: Call,
    host: str | None,
    port: int | None,
    names: tuple[str, ...],
    no_page: bool,
    tls_cert: str | None,
    tls_key: str | None,
    allow_plain_http: bool,
    opens: bool,
    until_eof: bool,
) -> None:
    """Serve the queue over HTTP: API, page, MCP, metrics. It starts no agent; `up` does both.

    \b
    Example:
      fairlane serve --port 8000
      fairlane serve --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem
    """
    from fairlane.cli.work.serving import Wanted, serve
    from fairlane.settings import FILE, Settings

    if (tls_cert is None) != (tls_key is None):
        raise Invalid("--tls-cert and --tls-key go together", "Give both.", code="usage")
    settings = Settings.load(call.folder / FILE).server
    wanted = Wanted(
        host=settings.host if host is None else host,
        port=settings.port if port is None else port,
        page=settings.page and not no_page,
        tls=(tls_cert, tls_key) if tls_cert and tls_key else None,
        plain=allow_plain_http,
        names=names,
        daemon=os.getppid() if until_eof else None,
    )

    tells_link = wanted.page and (not until_eof or sys.stdout.isatty())  # not into a log

    def started(url: str, link: str) -> None:
        if call.json:
            print_json({"schema": "fairlane/1", "url": url, "link": link})
        else:
            write(f"serving {url}\n" + (f"open {link}\n" if tells_link else ""))
        sys.stdout.flush()
        if opens:
            click.launch(link)

    if until_eof:
        threading.Thread(target=_end_with_input, daemon=True).start()
    serve(call, wanted, started)


def _end_with_input() -> None:
    """Whoever started this server is gone."""
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
