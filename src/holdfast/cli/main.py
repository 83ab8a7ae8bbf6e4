"""The command `holdfast`: finds the subcommand, shows errors as one line, turns them into exit codes
(`exit_codes.py`)."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from typing import Any, Final

import click

from holdfast.cli.exit_codes import INTERRUPTED, Fault, OutOfTime, Refused, one_line
from holdfast.cli.lazy import LazyGroup
from holdfast.errors import HoldfastError

DEBUG: Final = "holdfast.debug"

# Command -> module and name in it, and what `--help` says of it. Modules import what they run only when they run.
COMMANDS: Final = {
    "dev": ("holdfast.cli.dev:dev", "Run an application here: engine, worker and server in one process."),
    "server": ("holdfast.cli.server:server", "Serve a database over REST and gRPC."),
    "worker": ("holdfast.cli.worker:worker", "Run the workflows and tasks of an application."),
    "workflow": ("holdfast.cli.workflow:workflow", "Start, look at, signal, end and redo workflows."),
    "task": ("holdfast.cli.task:task", "Look at tasks; complete or fail one by its token."),
    "promise": ("holdfast.cli.promise:promise", "Look at promises and settle them."),
    "event": ("holdfast.cli.event:event", "Publish events, look at kept and dead ones, explain who gets them."),
    "broadcast": ("holdfast.cli.broadcast:broadcast", "Wake everybody who waits for a name."),
    "message": ("holdfast.cli.message:message", "Send a message to the one who waits for it."),
    "dead-letters": ("holdfast.cli.dead_letters:dead_letters", "Look at signals nobody has read; send them again."),
    "queue": ("holdfast.cli.queue:queue", "See what waits in queues; pause a queue and let it go on."),
    "workers": ("holdfast.cli.workers:workers", "See who works; pause or drain a worker."),
    "key": ("holdfast.cli.key:key", "Make, list, revoke and rotate API keys."),
    "audit": ("holdfast.cli.audit:audit", "Look at the record of acts, and check it."),
    "org": ("holdfast.cli.org:org", "List, make, close and delete orgs."),
    "export": ("holdfast.cli.export:export", "Write histories as JSON lines."),
    "doctor": ("holdfast.cli.doctor:doctor", "Say what is wrong, or why one workflow does not move."),
    "recover": ("holdfast.cli.recover:recover", "Take back what lost workers held, and repair what can be."),
    "migrate": ("holdfast.cli.migrate:migrate", "Bring the schema of a database up to date."),
    "completion": ("holdfast.cli.completion:completion", "Print the script that completes commands in a shell."),
    "version": ("holdfast.cli.version:version", "Say which versions are at work."),
}


class Commands(LazyGroup):
    """The outermost group: whatever goes wrong below it ends here."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            raise _in_one_line(error) from error

    def invoke(self, ctx: click.Context) -> Any:
        _write_anything()
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            raise _in_one_line(error) from error
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(INTERRUPTED)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            if ctx.meta.get(DEBUG) or isinstance(error, BrokenPipeError):
                raise  # whoever read our output may have seen enough; click then ends quietly
            raise _shown(error) from error


def _in_one_line(error: click.UsageError) -> click.UsageError:
    """Wrong use, with where to read how it is used; not with half a page of that."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return error
    help_ = f" See `{error.ctx.command_path} --help`." if error.ctx is not None else ""
    message = one_line(error.format_message())
    return click.UsageError(message if "--help`" in message else f"{message.rstrip('.')}.{help_}")


def _shown(error: Exception) -> Exception:
    match error:
        case HoldfastError():
            return Refused(error)
        case TimeoutError():
            return OutOfTime()
    return Fault(error)


def _write_anything() -> None:
    """A terminal without UTF-8 gets escapes instead of an error."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def remember_debug(ctx: click.Context, _: click.Parameter, wanted: bool) -> bool:
    if wanted:
        ctx.find_root().meta[DEBUG] = True
    return wanted


def debug_option(command: Any) -> Any:
    """Every command has it, so that it can be added at the end of a line that has failed."""
    return click.option(
        "--debug",
        is_flag=True,
        expose_value=False,
        envvar="HOLDFAST_DEBUG",
        callback=remember_debug,
        help="Show the traceback of an error.",
    )(command)


@click.command(cls=Commands, table=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="holdfast", message="holdfast %(version)s")
@debug_option
def main() -> None:
    """Holdfast: durable workflows.

    Commands work on a server (--server URL) or on a database (--db URL). Begin with `holdfast dev APP`.
    """
