"""The commands as click has them: a group whose verbs are imported when they are called."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import click

from fairlane import __version__
from fairlane.cli.call import Call
from fairlane.cli.main import SECTIONS, VERBS
from fairlane.cli.options import command_of, common
from fairlane.cli.verb import Verb
from fairlane.model.errors import Invalid, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from click.shell_completion import CompletionItem


class Verbs(click.Group):
    """The verbs by name; asking for the list imports none of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs, by name."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name in the verb's module."""
        if cmd_name not in VERBS:
            return None
        members = vars(import_module(f"fairlane.cli.{VERBS[cmd_name][0]}")).values()
        found = (each for each in members if isinstance(each, Verb | click.Command))
        command = next(each for each in found if each.name == cmd_name)
        return command_of(command) if isinstance(command, Verb) else command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A verb that is misspelled gets the nearest one."""
        completing = ctx.resilient_parsing  # a word that is not finished is no mistake
        if args and args[0] not in VERBS and not args[0].startswith("-") and not completing:
            near = did_you_mean(args[0], VERBS)
            hint = near if near.startswith("Did") else "`fairlane --help` lists all verbs."
            raise Invalid(f"no such verb: {args[0]!r}", hint, code="usage")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The verbs that begin so, without importing them; else the options."""
        from click.shell_completion import CompletionItem

        verbs = [verb for verb in VERBS if verb.startswith(incomplete)]
        matches = [CompletionItem(verb, help=VERBS[verb][1]) for verb in verbs]
        return matches or click.Command.shell_complete(self, ctx, incomplete)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of verbs, without importing them."""
        wide = max(map(len, VERBS))
        for title, verbs in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{verb:{wide}}", line) for verb, (_, line) in verbs.items()])


@click.group(
    cls=Verbs,
    name="fairlane",
    subcommand_metavar="VERB [ARGUMENTS]...",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@common
@click.version_option(__version__, message="fairlane %(version)s")
@click.pass_context
def fairlane(context: click.Context) -> None:
    """The scheduler for coding agents: a queue, and a reason for every decision.

    \b
    Example:
      fairlane add "Fix the login form" --project web
      fairlane why t1
    """
    context.ensure_object(Call)


def perform(arguments: Sequence[str], as_json: bool) -> int:
    """One command, and its exit code; mistakes are raised in our words."""
    try:
        code = fairlane.main(list(arguments), prog_name="fairlane", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        if as_json:
            raise Invalid("no verb was given", "See --help.", code="usage") from None
        click.echo(error.ctx.get_help() if error.ctx else "", err=True)
        return Invalid.exit_code
    except click.ClickException as error:
        raise _usage(error) from error
    except click.Abort:
        raise KeyboardInterrupt from None


def _usage(error: click.ClickException) -> Invalid:
    hint = ""
    if isinstance(error, click.UsageError) and error.ctx:
        hint = f"See {error.ctx.command_path} --help."
    return Invalid(" ".join(error.format_message().split()), hint, code="usage")
