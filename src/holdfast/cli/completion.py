"""`holdfast completion`."""

from __future__ import annotations

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "fish", "zsh"]))
def completion(shell: str) -> None:
    """Print the script that completes the commands of holdfast in SHELL.

    \b
    bash  add to ~/.bashrc: eval "$(holdfast completion bash)"
    zsh   add to ~/.zshrc: eval "$(holdfast completion zsh)"
    fish  holdfast completion fish > ~/.config/fish/completions/holdfast.fish
    """
    from click.shell_completion import get_completion_class

    from holdfast.cli.main import main

    completer = get_completion_class(shell)
    assert completer is not None, "click knows these three"
    click.echo(completer(main, {}, "holdfast", "_HOLDFAST_COMPLETE").source())
