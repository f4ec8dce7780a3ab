"""The page: what happens, to look at; everything it needs comes from here, nothing from elsewhere.

`mount(app, queue)` adds it to a Starlette application: `/`, `/tasks`, `/task/{id}`, `/groups`, and
`/page/…` for what these load. It needs no lifespan. Who may come in is not decided here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from fairlane.app.shared_queue import SharedQueue

#: What the page may load and do, for the browser to hold: itself, and nothing inline.
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
#: Where its addresses begin, beside `/` itself.
PLACES = ("/tasks", "/task/", "/groups", "/page/")


def mount(app: Starlette, queue: SharedQueue) -> None:
    """Add the page to an application."""
    from fairlane.page.routes import routes

    app.router.routes.extend(routes(queue))
